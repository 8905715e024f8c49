"""Whether a sentence denies what a source says, or says what it denies.

Each negation has a scope, the few content words behind it in its clause. What the sentence negates the text must
negate too, and what the text only negates the sentence mustn't affirm. Knows the negations of a few languages;
understands nothing.
"""

import re
from collections.abc import Callable

_CUES = re.compile(
    r"""\b(?:not|never|no[ ]longer|no(?!\.?[ ]?\d|\b[ ]one\b[ ]of)|none|nobody|nothing|nowhere|neither|nor|without
    |cannot|hardly|scarcely|barely|lack(?:s|ed|ing)?|fail(?:s|ed|ing)?[ ]to|unable[ ]to|refus(?:e|es|ed|ing)[ ]to
    |non(?=-)|exclud(?:es|ed|ing|e)|nicht|kein(?:e|er|es|en|em)?|nie|niemals|ohne|weder|jamais|aucune?|sans|nunca|jam[aá]s
    |ning[uú]n(?:a|o)?|tampoco|senza|non(?=[ ][a-zà-ù]+))\b|\b\w+n[’']t\b|\bn[’']|\bne\b(?=.{1,30}\b(?:pas|plus|rien)\b)
    |不|没|沒|未|ない|ません|ませ|ず(?=に)|않|못""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_CUES = re.compile(
    r"\bnot (?:only|just|merely|to mention|least)\b|\bno (?:doubt|later than|less than|more than|fewer than)\b"
    r"|\bwhy not\b|\bor (?:\w+ )?not\b|\b(?:not|n[’']t)\b[^.;]{1,50}\buntil\b"
    r"|\bnicht nur\b|\bnon seulement\b|\bno s[oó]lo\b",
    re.IGNORECASE,
)
# Words that deny without a negation: they can stand for one of the other side.
_IMPLIED = re.compile(
    r"""\b(?:fail\w*|declin\w*|forb[ai]d\w*|prohibit\w*|prevent\w*|bann?(?:ed|s|ing)?|refus\w*|reject\w*|den(?:y|ies|ied|ying|ial)
    |exempt\w*|avoid\w*|absen(?:t|ce)|impossib\w+|oppos(?:es?|ed|ing|ition)|protest\w*|stop(?:s|ped|ping)?|ceas\w+|lost|loses?|miss(?:ed|es)
    |un(?!less|der|it|iv|ion|iq|ifor|ify|ified|til)\w{4,}|\w{4,}less|inability|insufficient\w*|illegal\w*|verbot\w*)\b""",
    re.IGNORECASE | re.VERBOSE,
)
# The same for what a source leaves out of what it says; in an answer they affirm.
_EXCEPTED = re.compile(r"\b(?:except\w*|besides|instead|rather than|other than|unlike)\b", re.IGNORECASE)
_PART = re.compile(r"[.!?;:,]\s")
_BOUNDARY = re.compile(
    r"[.;:!?,)–—。！？；，、](?=\s|\Z|[^\x00-\x7f])|\s(?:but|however|whereas|while|although|though|because|"
    r"and|or|which|who|that|until|unless|if|aber|sondern|und|mais|et|pero|y)\s"
)
_BE = re.compile(r"\b(?:is|are|was|were|be|been)(?: not| never|n[’']t)\Z", re.IGNORECASE)
_OPPOSITES = ("un", "in", "im", "il", "ir", "dis", "non")
_SCOPE = 4
_REACH = 400  # characters around a negation; its clause is shorter
_HEAD = 2
_SHARED = 0.6


def denies(sentence: str, text: str, terms: Callable[[str], list[str]]) -> str:
    """The words over which `sentence` and `text` say opposite things, "" if they don't.

    `terms` gives the content words of a text in one form, in order.
    """
    negations, theirs = _negations(sentence, terms), [scope for scope, _ in _negations(text, terms)]
    words, there = frozenset(terms(sentence)), frozenset(terms(text))
    denied = frozenset(word for scope in theirs for word in scope)
    affirmed = frozenset(terms(_outside(text)))
    for scope, subject in negations:
        if _implied_near(scope, text, words, terms) or any(subject and subject.issubset(s) for s in theirs):
            continue
        opposite = any(f"{prefix}{word}" in there - words for prefix in _OPPOSITES for word in scope[:_HEAD])
        opposite = opposite or any(f"{word}less" in there for word in scope[:_HEAD])
        said_of_another = affirmed.issuperset(scope) and not denied.issuperset(scope)
        if not opposite and (said_of_another or not denied.intersection(scope)):
            return " ".join(scope)
    denying = frozenset(word for scope, subject in negations for word in (*scope, *subject))
    for scope in theirs:
        shared = [word for word in scope if word in words]
        if len(shared) < _SHARED * len(scope) or denying.intersection(scope):
            continue
        if not affirmed.issuperset(shared) and not _implied(_IMPLIED, sentence, there, terms):
            return " ".join(scope)
    return ""


def negates(text: str) -> bool:
    """Whether the text has a negation."""
    return bool(_cues(text))


def _implied_near(scope: tuple[str, ...], text: str, words: frozenset[str], terms: Callable[[str], list[str]]) -> bool:
    """Whether the text denies what the scope begins with by a word of its own, near it and not in the sentence."""
    near = [part for part in _PART.split(text) if scope[0] in terms(part)]
    excepted = [part[match.end() :] for part in near for match in _EXCEPTED.finditer(part)]
    return any(_implied(_IMPLIED, part, words, terms) for part in near) or any(
        words.intersection(terms(behind)[:_HEAD]) for behind in excepted
    )


def _implied(pattern: re.Pattern[str], text: str, other: frozenset[str], terms: Callable[[str], list[str]]) -> bool:
    """Whether a word of `text` denies without a negation, one that the `other` side doesn't have as well."""
    return any(other.isdisjoint(terms(match.group())) for match in pattern.finditer(text))


def _negations(text: str, terms: Callable[[str], list[str]]) -> list[tuple[tuple[str, ...], frozenset[str]]]:
    """What each negation negates: the content words behind it in its clause, else those before it; and its subject.

    The subject is what stands before `is not`: that labour is not covered a source may say as `parts but not labour`.
    """
    found = []
    for cue in _cues(text):
        last = min(len(text), cue.end() + _REACH)
        clause = _BOUNDARY.search(text, cue.end(), last)
        if cue.group().casefold() == "non":  # of one word only
            clause = re.compile(r"\s").search(text, cue.end())
        behind = terms(_CUES.sub(" ", text[cue.end() : clause.start() if clause else last]))
        part = _BOUNDARY.split(text[max(0, cue.start() - _REACH) : cue.start()])[-1]
        before = terms(_CUES.sub(" ", part))
        subject = frozenset(before) if behind and _BE.search(f"{part}{cue.group()}") else frozenset[str]()
        found.append((tuple(behind[:_SCOPE] or before[-_SCOPE:]), subject))
    return [negation for negation in dict.fromkeys(found) if negation[0]]


def _cues(text: str) -> list[re.Match[str]]:
    harmless = [match.span() for match in _NO_CUES.finditer(text)]
    return [c for c in _CUES.finditer(text) if not any(a <= c.start() < b for a, b in harmless)]


def _outside(text: str) -> str:
    """The text without its negated clauses."""
    for cue in reversed(_cues(text)):
        clause = _BOUNDARY.search(text, cue.end())
        text = text[: cue.start()] + " . " + (text[clause.start() :] if clause else "")
    return text
