"""Measures the rules of the citation check: right sentences that are flagged, seeded faults that are caught.

`python benchmarks/citation_rules.py DIR/xquad_en [DIR/wice_dev]`. Right sentences are made from questions and their
gold answers (the answer put in the place of the question word); faults are made from the right ones: a changed digit,
a name of another passage, a negation put in or taken out. wice holds claims that people judged against a web page.
"""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import sentencex

from leadline.citations.names import names
from leadline.citations.rules import check_sentence

WH = re.compile(
    r"(?:how (?:many|much)|(?:in |on |at |by |for |from |to )?(?:what|which) (?:\w+ ){0,2}?"
    r"(?=(?:did|does|do|is|was|are|were|has|have|had|can|could|would|will)\b)|who|what|which \w+|when|where)\b\s*",
    re.IGNORECASE,
)
DO = re.compile(r"^(?:did|does|do)\b\s*", re.IGNORECASE)
BE = re.compile(r"^(is|was|are|were|has|have|had|can|could|would|will)\b\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Case:
    """A right sentence, the place that supports it, and the rest of the passage."""

    sentence: str
    span: str
    context: str


def xquad_cases(folder: Path) -> Iterator[Case]:
    """Right declaratives; questions that can't be turned into one are left out."""
    texts = {d["_id"]: d for d in map(json.loads, (folder / "corpus.jsonl").read_text().splitlines())}
    for query in map(json.loads, (folder / "queries.jsonl").read_text().splitlines()):
        span = query["metadata"]["answer_spans"][0]
        document = texts[span["doc_id"]]
        sentence = declarative(query["text"], span["text"])
        if sentence:
            yield Case(sentence, window(document["text"], span["start"]), f"{document['title']}\n{document['text']}")


def declarative(question: str, answer: str) -> str:
    """The question with its answer in the place of the question word, "" if it doesn't begin with one."""
    match = WH.match(question.strip())
    if not match:
        return ""
    rest = question.strip()[match.end() :].rstrip("? ")
    if DO.match(rest):
        return f"{DO.sub('', rest)}: {answer}.".replace(" :", ":")
    if BE.match(rest):
        return f"{BE.sub('', rest)} {rest.split(' ')[0]} {answer}."
    return f"{answer} {rest}."


def window(text: str, at: int) -> str:
    """The sentence at a place, with its neighbours."""
    bounds = [(b["start_index"], b["end_index"]) for b in sentencex.get_sentence_boundaries("en", text)]
    hit = next((n for n, (first, last) in enumerate(bounds) if first <= at < last), 0)
    return text[bounds[max(0, hit - 1)][0] : bounds[min(len(bounds) - 1, hit + 1)][1]]


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
    foreign = [n for n in others if n.casefold() not in case.context.casefold()]
    return case.sentence.replace(rng.choice(found), rng.choice(foreign), 1)


def wrong_polarity(case: Case, rng: random.Random) -> str | None:
    """The sentence with a negation put in or taken out."""
    del rng
    if re.search(r"\b(?:not|never|no)\b", case.sentence):
        return re.sub(r"\b(?:not|never|no)\b ?", "", case.sentence, count=1)
    changed, count = re.subn(
        r"\b(is|was|are|were|has|have|had|can|could|would|will)\b", r"\1 not", case.sentence, count=1
    )
    if count:
        return changed
    verb = re.match(r"(.*?\b\w+ed\b)", case.sentence)
    return case.sentence.replace(verb[1], re.sub(r"(\w+ed)$", r"never \1", verb[1]), 1) if verb else None


def measure(cases: list[Case]) -> None:
    """Prints false flags by kind, and the share of each seeded fault that is caught by any rule and by its own."""
    rng = random.Random(0)
    kinds: Counter[str] = Counter()
    flagged = 0
    right = []
    for case in cases:
        problems = check_sentence(case.sentence, case.span, context=case.context)
        flagged += bool(problems)
        kinds.update({p.kind for p in problems})
        if not problems:
            right.append(case)
        elif "-v" in sys.argv:
            print("FLAG", [(p.kind, p.what) for p in problems], "|", case.sentence, "|", case.span[:300])
    print(f"right declaratives: {len(cases)}, flagged {flagged} ({flagged / len(cases):.1%}), by kind {dict(kinds)}")
    others = sorted({n.text for c in cases for n in names(c.sentence) if not n.code})
    for kind, fault in (
        ("number", wrong_digit),
        ("name", lambda c, r: wrong_name(c, r, others)),
        ("negation", wrong_polarity),
    ):
        seeded = [(c, wrong) for c in cases if (wrong := fault(c, rng)) and wrong != c.sentence]
        caught = own = 0
        for case, wrong in seeded:
            problems = {p.kind for p in check_sentence(wrong, case.span, context=case.context)}
            caught += bool(problems)
            own += bool(problems & ({kind, "date", "name"} if kind == "number" else {kind}))
            if not problems and "-v" in sys.argv:
                print("MISS", kind, "|", wrong, "|", case.span[:300])
        print(
            f"{kind}: {len(seeded)} seeded, caught {caught / len(seeded):.1%}, by its own rule {own / len(seeded):.1%}"
        )


def wice(folder: Path) -> None:
    """Flags on judged claims, each against its supporting lines (supported) or its whole page (not supported)."""
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
        counts = totals.setdefault(meta["label"], Counter())
        counts.update(["n", *(["flagged"] if problems else []), *{p.kind for p in problems}])
    for label, counts in totals.items():
        print(label, dict(counts))


if __name__ == "__main__":
    folders = [Path(a) for a in sys.argv[1:] if not a.startswith("-")]
    measure(list(xquad_cases(folders[0])))
    for folder in folders[1:]:
        wice(folder)
