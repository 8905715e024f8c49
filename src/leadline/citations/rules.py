"""Whether a text supports a sentence, by rule: figures, dates, names, negation, quoted words, and shared words.

Each rule finds one kind of fault and names it. No rule understands the sentence: what passes them all may still be
wrong, what fails one is not supported word for word.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from leadline.analysis import STOP_WORDS, Analyzer, english_stem
from leadline.citations.contrasts import contradicted
from leadline.citations.dates import Date, take_dates
from leadline.citations.exchanged import exchanged_name
from leadline.citations.figures import of_another_clause, stands_among
from leadline.citations.markers import parse_markers
from leadline.citations.names import Mentions, names, written_out
from leadline.citations.negation import denies
from leadline.citations.quantities import Quantity, quantities
from leadline.citations.roles import other_agent
from leadline.citations.wordforms import base_form

ProblemKind = Literal[
    "number", "date", "name", "negation", "quotation", "coverage", "opposite", "unknown_source", "critic"
]
# Of a sentence's content words, the share that the cited place must have too.
MIN_COVERAGE = 0.5
# The same without names and figures: what is said of them.
MIN_COVERAGE_OF_SAID = 0.34
# Of all of them, in a row of a table.
MIN_COVERAGE_OF_ROW = 0.6
_ROOT = 5
# Longer ones are not looked at, and so not verified: the time that some rules take grows faster than the text.
MAX_SENTENCE_CHARS = 1200
MAX_SPAN_CHARS = 6000
# Words that say of a thing little more than that it is: a source has others in their place, or none.
_LIGHT = frozenset(
    english_stem(word)
    for word in """located location situated based place take takes called call named name names known know exist exists
    live lives come comes go goes happen happened occur occurred include includes contain contains consist consists
    issued used use uses type kind sort part parts example examples common commonly term terms title titled today
    current currently one two group number regarded considered""".split()
)
# A name that ends in a single letter: Pump A, Site D. An A that opens a sentence, and initials, are none.
_LETTERED = re.compile(r"\b[A-Z][a-z]{2,} [A-HJ-Z](?![\w.'’+#&-])")
_QUOTED = re.compile(r"“([^”]+)”|„([^“”]+)[“”]|«\s*([^»]+?)\s*»|「([^」]+)」|(?<![\w\"])\"([^\"\n]+)\"(?!\w)")


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: `what` is the figure, name or words at fault, `sentence` where it stands."""

    kind: ProblemKind
    what: str
    sentence: str = ""


def check_sentence(sentence: str, span_text: str, *, context: str = "") -> list[Problem]:
    """What in `sentence` the text `span_text` doesn't support; empty if nothing.

    `context` (the rest of the passage, headings, title, file name) may supply names, and the year where the span names
    none; no other figure. A sentence that stands in the span word for word has no problem. One of more than 1,200
    characters can't be checked, nor can any against a span of more than 6,000: a problem of coverage.
    """
    if len(sentence) > MAX_SENTENCE_CHARS or len(span_text) > MAX_SPAN_CHARS:
        return [Problem("coverage", "too long to be checked")]
    sentence, span_text = _without_marks(sentence), _without_marks(span_text)
    if stands_in(sentence, span_text):
        return []
    return [
        *_dates_and_numbers(sentence, span_text, context),
        *_names(sentence, span_text, context),
        *_negation(sentence, span_text),
        *_opposites(sentence, span_text),
        *_quotations(sentence, f"{span_text}\n{context}"),
        *_coverage(sentence, span_text),
    ]


def stands_in(sentence: str, text: str) -> bool:
    """Whether `text` has the whole sentence word for word; the end of a longer one ("does not …") doesn't count."""
    wanted, there = _verbatim(sentence), _verbatim(text)
    at = there.find(wanted) if wanted else -1
    while at >= 0:
        before, after = there[:at].rstrip(" \"'(#*-|"), there[at + len(wanted) :].lstrip(" \"')")
        begins = not before or before[-1] in ".!?。！？:;"
        if begins and (not after or wanted[-1] in ".!?。！？" or after[0] in ".!?。！？;|"):
            return True
        at = there.find(wanted, at + 1)
    return False


def content_terms(text: str) -> list[str]:
    """The content words of a text in the analyser's form, each once, in order."""
    return list(_content_terms(text))


def said_terms(sentence: str) -> list[str]:
    """What is said: the content words without those that say little, and names and figures, which have own rules."""
    own_rules = {term for name in names(sentence) for term in _analyzer().terms(name.text)}
    own_rules |= {term for quantity in quantities(sentence) for term in _analyzer().terms(quantity.text)}
    return [term for term in content_terms(sentence) if term not in own_rules and term not in _LIGHT]


def coverage(sentence: str, span_text: str) -> float:
    """The share of the sentence's content words that the text has, from 0 to 1; 1 where there are none."""
    return _share(content_terms(sentence), sentence, span_text)


def _share(wanted: Sequence[str], sentence: str, span_text: str) -> float:
    return 1 - len(_lacking(wanted, sentence, span_text)) / len(wanted) if wanted else 1.0


def _lacking(wanted: Sequence[str], sentence: str, span_text: str) -> list[str]:
    """The terms of the sentence that the text lacks; an amount in another unit (two years, 24 months) is there."""
    missing = missing_terms(wanted, span_text)
    amounts = [q for q in _figures(sentence)[2] if q.unit] if missing else []
    there = {
        term
        for amount in amounts
        if any(other.unit and amount.agrees(other) for other in _figures(span_text)[2])
        for term in _analyzer().terms(amount.text)
    }
    return [term for term in missing if term not in there]


def missing_terms(wanted: Sequence[str], span_text: str) -> list[str]:
    """The terms that the text has neither as they are nor with another ending (discovery, discovered)."""
    there = terms_of(span_text)
    beginnings = frozenset(term[:_ROOT] for term in there if len(term) >= _ROOT)
    return [t for t in wanted if t not in there and (t[:_ROOT] not in beginnings or not t.isalpha())]


@cache
def _analyzer() -> Analyzer:
    return Analyzer()


@lru_cache(maxsize=1024)
def _content_terms(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(base_form, _analyzer().query_terms(text))))


# Every sentence of an answer is held against the same few passages.
@lru_cache(maxsize=1024)
def terms_of(text: str) -> frozenset[str]:
    """Every term of a text in the analyser's form, irregular forms as their base."""
    return frozenset(map(base_form, _analyzer().terms(text)))


_mentions = lru_cache(maxsize=128)(Mentions)


@lru_cache(maxsize=1024)
def _figures(text: str) -> tuple[list[Date], str, list[Quantity]]:
    """The dates of a text, the text without them, and the amounts in that."""
    dates, rest = take_dates(text)
    return dates, rest, quantities(rest)


def _dates_and_numbers(sentence: str, span_text: str, context: str) -> list[Problem]:
    dates, sentence_rest, said = _figures(sentence)
    span_dates, _, amounts = _figures(span_text)
    years = _years(span_text) or _years(context)
    missing = [Problem("date", d.text) for d in dates if not any(d.agrees(other, years) for other in span_dates)]
    dated = frozenset(float(part) for d in span_dates for reading in d.readings for part in reading if part is not None)
    for quantity in said:
        there = stands_among(quantity, sentence_rest, amounts) or dated.intersection(quantity.values)
        if not (
            there
            or quantity.loose
            or years.intersection(quantity.values)
            or _in_time(quantity, sentence_rest, span_text)
            or _counts_a_list(quantity, sentence_rest)
            or _part_of_a_name(quantity, sentence_rest, context)
        ):
            missing.append(Problem("number", quantity.text))
    other = of_another_clause(sentence, span_text) if said and not missing else ""
    return [*missing, Problem("number", other)] if other else missing


def _in_time(quantity: Quantity, sentence: str, span_text: str) -> bool:
    """Whether a century or a decade is that of a year there, or of the same time said the other way (1700s, 18th)."""
    word = re.match(r"[-\s]*(?:century|centuries|jahrhunderts?|siècle|siglo)\b", _behind(quantity, sentence), re.I)
    centuries = [int(n) for n in re.findall(r"\b(\d{1,2})(?:st|nd|rd|th)[-\s]centur", span_text)]
    years = _years(span_text)
    decade = re.fullmatch(r"([12]\d)(\d)0s", quantity.text + _behind(quantity, sentence)[:1])
    if word:
        first = (quantity.values[0] - 1) * 100
        return any(first <= year < first + 100 for year in years)
    if decade:
        first = float(decade[1] + decade[2] + "0")
        last = first + (100 if decade[2] == "0" else 10)
        return any(first <= year < last for year in years) or (decade[2] == "0" and int(decade[1]) + 1 in centuries)
    return False


def _behind(quantity: Quantity, sentence: str) -> str:
    return sentence[quantity.start + len(quantity.text) :]


def _counts_a_list(quantity: Quantity, sentence: str) -> bool:
    """Whether a small number in words counts what the sentence itself lists: the two parts are A and B."""
    listed = re.split(r"\b(?:are|were|is|was|includ\w+)\b|:", _behind(quantity, sentence))[-1]
    separators = re.findall(r",\s*(?:and|or)\b|,|\band\b|\bor\b", listed)
    return quantity.text.split()[0].isalpha() and quantity.values[0] - 1 == len(separators) > 0


def _part_of_a_name(quantity: Quantity, sentence: str, context: str) -> bool:
    """Whether a figure belongs to a name that the context has too: Super Bowl 50, Route 41."""
    before = re.search(r"([^\W\d_]+) \Z", sentence[: quantity.start])
    if not before or not before[1][0].isupper() or not quantity.text.isdigit():
        return False
    return re.search(rf"\b{re.escape(before[1])}[ _]{quantity.text}(?!\w)", context) is not None


def _years(text: str) -> frozenset[float]:
    return frozenset(float(year) for year in re.findall(r"(?<![\d.,$€£])[12]\d{3}(?![\d%]|[.,]\d)", text))


def _names(sentence: str, span_text: str, context: str) -> list[Problem]:
    sources = [_mentions(span_text), _mentions(context)]
    missing = [name for name in names(sentence) if not any(s.has(name) for s in sources)]
    short = written_out(sentence, sources) if missing else frozenset[str]()
    lettered = [
        Problem("name", pair) for pair in _LETTERED.findall(sentence) if _other_letter(pair, span_text, context)
    ]
    found = [*(Problem("name", name.text) for name in missing if name.text not in short), *lettered]
    if found or span_text.lstrip().startswith("|"):  # a table's header says what stands in its rows
        return found
    other = exchanged_name(sentence, context, span_text)
    return [Problem("name", other)] if other else []


def _other_letter(pair: str, span_text: str, context: str) -> bool:
    """Whether a name ends in another letter there than in the sentence: Pump A, Pump B."""
    word = pair.rpartition(" ")[0]
    if word.casefold() in STOP_WORDS or re.search(rf"\b{re.escape(pair)}\b", span_text, re.IGNORECASE):
        return False
    return bool(re.search(rf"\b{re.escape(word)} [A-Z]\b", span_text)) or pair not in context


def _negation(sentence: str, span_text: str) -> list[Problem]:
    opposite = denies(sentence, span_text, content_terms)
    return [Problem("negation", opposite)] if opposite else []


def _opposites(sentence: str, span_text: str) -> list[Problem]:
    word = contradicted(sentence, span_text) or other_agent(sentence, span_text)
    return [Problem("opposite", word)] if word else []


def _quotations(sentence: str, text: str) -> list[Problem]:
    there = _verbatim(text)
    quoted = ["".join(match) for match in _QUOTED.findall(sentence)]
    return [Problem("quotation", words) for words in quoted if _verbatim(words).strip(" .,;:!?…") not in there]


def _coverage(sentence: str, span_text: str) -> list[Problem]:
    """Names and figures have rules of their own, so what is said of them counts once more without them."""
    wanted = [term for term in content_terms(sentence) if term not in _LIGHT] or content_terms(sentence)
    share = _share(wanted, sentence, span_text)
    if span_text.lstrip().startswith("|"):  # a row names things and amounts; what is said of them stands in its header
        supported = share >= MIN_COVERAGE_OF_ROW
    else:
        supported = share >= MIN_COVERAGE and _share(said_terms(sentence), sentence, span_text) >= MIN_COVERAGE_OF_SAID
    if supported:
        return []
    return [Problem("coverage", " ".join(_lacking(wanted, sentence, span_text)))]


def _without_marks(text: str) -> str:
    """The text without `[n]`: an answer's own marks, and those that a source brought along."""
    for marker in reversed(parse_markers(text)):
        text = text[: marker.start] + text[marker.end :]
    return text


def _verbatim(text: str) -> str:
    """One form for texts that a reader takes for the same: case, blanks, quotation marks, dashes, ligatures."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"[“”„«»\"「」]", '"', re.sub(r"[’‘ʼ]", "'", re.sub(r"[‐‑‒–—−]", "-", text)))
    return re.sub(r"\s+([.,;:!?])", r"\1", " ".join(text.split()))
