"""Measures the check of citations: right sentences that are flagged, seeded faults that are caught.

`python benchmarks/citation_rules.py declaratives.jsonl [DIR/wice_dev] [-v] [--rules] [--right] [--sample N]`; the
sentences are those of `benchmarks/declaratives.py`. Each is checked as the product checks an answer that cites its
passage: the best place is looked for, and where only the words differ the meaning decides (`--rules`: it doesn't).
`--right`: right sentences only. Faults are made from the right ones: a changed digit, a name of another passage or of
the same, a negation put in or taken out, the verb of another sentence, another passage of the same article. Intervals
are Wilson's, of 95 %.

Right sentences made of questions repeat the slips of those who asked. Those with a name or a figure that stands nowhere
in the passage or its title, or a name that no passage at all has (ARPNET for ARPANET), are counted apart: to flag them
is right.
"""

import argparse
import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from leadline.citations import AnswerCheck, MeaningByLikeness, check_answer, check_sentence
from leadline.citations.names import names
from leadline.citations.rules import coverage
from leadline.models.likeness import TokenLikeness
from leadline.models.minilm import MiniLM
from leadline.nodes.passages import sentence_spans

Check = Callable[..., AnswerCheck]
VERB = re.compile(r"\b[a-z]{4,}ed\b")


@dataclass(frozen=True)
class Case:
    """A sentence, its question, the passage it cites and its title; `group` is the article."""

    sentence: str
    question: str
    passage: str
    title: str
    group: tuple[str, str]

    def slips(self, vocabulary: set[str]) -> bool:
        """Whether a figure, or a name's first letters, stand nowhere in passage and title, or a name in no passage."""
        there = f"{self.title}\n{self.passage}".casefold()
        figures = re.findall(r"\d+", self.sentence)
        capitals = re.findall(r"(?<!^)\b[A-Z][\w']{2,}", self.sentence)
        words = re.findall(r"\b[A-Z]\w{4,}", self.sentence)
        return (
            any(f not in there for f in figures)
            or any(c[:6].casefold().rstrip("s") not in there for c in capitals)
            or any(w.casefold().removesuffix("s") not in vocabulary and w.casefold() not in vocabulary for w in words)
        )


def block(case: Case) -> Any:
    """The passage as the compressor numbers it."""
    metadata = {"chunk_id": "c", "title": case.title, "file_name": "", "headings": [], "start_char": 0}
    document = {"content": case.passage, "metadata": metadata, "score": 0.0, "source": "bm25", "rerank_score": 1.0}
    return {"n": 1, "chunk_id": "c", "sentences": sentence_spans(case.passage), "document": document}


def checked(case: Case, check: Check) -> AnswerCheck:
    """The check of an answer that is this sentence with its mark."""
    return check(f"{case.sentence.rstrip('.')} [1].", [block(case)], case.question)


def wrong_digit(case: Case, rng: random.Random) -> str | None:
    """The sentence with one digit changed."""
    places = [m.start() for m in re.finditer(r"\d", case.sentence)]
    if not places:
        return None
    at = rng.choice(places)
    digit = rng.choice([d for d in "123456789" if d != case.sentence[at]])
    return case.sentence[:at] + digit + case.sentence[at + 1 :]


def wrong_name(case: Case, rng: random.Random, others: list[str]) -> str | None:
    """The sentence with a name from another passage."""
    found = [n.text for n in names(case.sentence)]
    if not found:
        return None
    there = f"{case.title} {case.passage}".casefold()
    return case.sentence.replace(rng.choice(found), rng.choice([n for n in others if n.casefold() not in there]), 1)


def near_name(case: Case, rng: random.Random) -> str | None:
    """The sentence with another name of its own passage."""
    found = [n.text for n in names(case.sentence) if not n.code]
    others = [n.text for n in names(case.passage) if not n.code and len(n.text) > 3 and n.text not in case.sentence]
    return case.sentence.replace(rng.choice(found), rng.choice(others), 1) if found and others else None


def wrong_polarity(case: Case, rng: random.Random) -> str | None:
    """The sentence with a negation put in or taken out."""
    del rng
    if re.search(r"\bor not\b|n['’]t\b|\bneither\b|\bnot only\b", case.sentence):
        return None
    if re.search(r"\b(?:not|never|no)\b", case.sentence):
        return re.sub(r"\b(?:not|never|no)\b ?", "", case.sentence, count=1)
    auxiliary = r"\b(is|was|are|were|has|have|had|can|could|would|will)\b"
    changed, count = re.subn(auxiliary, r"\1 not", case.sentence, count=1)
    return changed if count else re.sub(r"\b([a-z]+ed)\b", r"never \1", case.sentence, count=1)


def wrong_verb(case: Case, rng: random.Random, others: list[str]) -> str | None:
    """The sentence with the verb of another one, which the passage doesn't have."""
    found = VERB.search(case.sentence)
    foreign = [verb for verb in others if verb[:5] not in case.passage.casefold()]
    return case.sentence.replace(found.group(), rng.choice(foreign), 1) if found else None


def wrong_passage(case: Case, passages: Iterable[str]) -> Case | None:
    """The sentence with the passage of its article that has most of its words, but for its own."""
    best = max((p for p in passages if p != case.passage), key=lambda p: coverage(case.sentence, p), default=None)
    return Case(case.sentence, case.question, best, case.title, case.group) if best else None


def share(count: int, of: int) -> str:
    """A percentage with its interval."""
    rate, z = count / max(of, 1), 1.96
    middle = (rate + z * z / (2 * max(of, 1))) / (1 + z * z / max(of, 1))
    half = z / (1 + z * z / max(of, 1)) * math.sqrt(rate * (1 - rate) / max(of, 1) + (z / (2 * max(of, 1))) ** 2)
    return f"{count}/{of} = {rate:.1%} ({middle - half:.1%}–{middle + half:.1%})"


def measure_right(title: str, cases: list[Case], check: Check, vocabulary: set[str], *, verbose: bool) -> list[Case]:
    """Prints how many right sentences are flagged, and gives those that aren't."""
    kinds: Counter[str] = Counter()
    flagged, unnamed, good = 0, 0, []
    for case in cases:
        found = checked(case, check)
        slip = case.slips(vocabulary)
        unnamed += slip
        if found.grounding == "grounded":
            good.append(case)
        elif not slip:
            flagged += 1
            kinds.update({p.kind for p in found.problems})
            if verbose:
                print("FLAG", [(p.kind, p.what) for p in found.problems], "|", case.sentence, "|", case.passage[:900])
    every = len(cases) - len(good)
    print(f"{title}: flagged {share(flagged, len(cases) - unnamed)} by kind {dict(kinds)}")
    print(f"{title}, with those whose names or figures the passage lacks: {share(every, len(cases))}")
    return good


def measure_faults(title: str, cases: list[Case], check: Check, *, verbose: bool) -> None:
    """Prints the share of each kind of seeded fault that is caught."""
    rng = random.Random(0)
    others = sorted({n.text for c in cases for n in names(c.sentence) if not n.code})
    verbs = sorted({verb for c in cases for verb in VERB.findall(c.sentence)})
    faults: dict[str, Callable[[Case, random.Random], str | None]] = {
        "digit": wrong_digit,
        "name": lambda c, r: wrong_name(c, r, others),
        "negation": wrong_polarity,
        "verb": lambda c, r: wrong_verb(c, r, verbs),
        "name of the same passage": near_name,
    }
    for kind, fault in faults.items():
        made = [(c, wrong) for c in cases if (wrong := fault(c, rng)) and wrong != c.sentence]
        caught = 0
        for case, wrong in made:
            seeded = Case(wrong, case.question, case.passage, case.title, case.group)
            hit = checked(seeded, check).grounding == "ungrounded"
            caught += hit
            if verbose and not hit:
                print("MISS", kind, "|", wrong, "|", case.passage[:900])
        print(f"{title}: {kind} caught {share(caught, len(made))}")
    passages: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for case in cases:
        passages[case.group].add(case.passage)
    moved = [other for c in cases if (other := wrong_passage(c, sorted(passages[c.group])))]
    caught = sum(checked(other, check).grounding == "ungrounded" for other in moved)
    print(f"{title}: another passage of the article caught {share(caught, len(moved))}")


def wice(folder: Path, meaning: MeaningByLikeness | None) -> None:
    """Flags on claims that people judged, each against its supporting lines, or else its whole page."""
    texts = {
        d["_id"]: d["text"].splitlines() for d in map(json.loads, (folder / "corpus.jsonl").read_text().splitlines())
    }
    totals: dict[str, Counter[str]] = {}
    for query in map(json.loads, (folder / "queries.jsonl").read_text().splitlines()):
        meta = query["metadata"]
        lines = texts[meta["doc_id"]]
        chosen = meta["supporting_sentences"][0] if meta["supporting_sentences"] else range(len(lines))
        span = "\n".join(lines[n] for n in chosen if n < len(lines))
        problems = check_sentence(query["text"], span, context="\n".join([*lines, meta["claim_title"]]))
        kinds = {p.kind for p in problems}
        excused = kinds == {"coverage"} and meaning is not None and meaning(query["text"], [span])[0] > 0
        counts = totals.setdefault(meta["label"], Counter())
        counts.update(["n", *(["flagged"] if problems and not excused else []), *([] if excused else kinds)])
    for label, counts in totals.items():
        print("wice", label, share(counts["flagged"], counts["n"]), dict(counts))


def main() -> None:
    """Reads the sentences and prints every measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("wice", type=Path, nargs="?")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--rules", action="store_true", help="without meaning")
    parser.add_argument("--right", action="store_true", help="right sentences only")
    parser.add_argument("--sample", type=int, default=1000, help="sentences of each kind")
    options = parser.parse_args()
    meaning = None if options.rules else MeaningByLikeness(TokenLikeness(MiniLM()))
    check = partial(check_answer, meaning=meaning)
    kinds: defaultdict[str, list[Case]] = defaultdict(list)
    for row in map(json.loads, options.sentences.read_text(encoding="utf-8").splitlines()):
        case = Case(row["sentence"], row["question"], row["passage"], row["title"], (row["set"], row["title"]))
        kinds[f"{row['set']}, of the {row['made_of']}" if row["at"] is not None else "traps"].append(case)
    passages = {case.passage for cases in kinds.values() for case in cases}
    vocabulary = {word for passage in passages for word in re.findall(r"\w+", passage.casefold())}
    for title, cases in kinds.items():
        random.Random(1).shuffle(cases)
        sample = cases[: options.sample]
        if title == "traps":
            caught = sum(checked(case, check).grounding == "ungrounded" for case in sample)
            print(f"traps of unanswerable questions: caught {share(caught, len(sample))}")
        else:
            good = measure_right(title, sample, check, vocabulary, verbose=options.verbose)
            if not options.right:
                measure_faults(title, good, check, verbose=options.verbose)
    if options.wice:
        wice(options.wice, meaning)


if __name__ == "__main__":
    main()
