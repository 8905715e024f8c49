"""Follow-up questions made to stand alone by rule, in English, German, Spanish, French and Chinese.

Three kinds lean on the question before: a fragment ("And Globex?"), a pronoun ("Who founded it?") and a question that
leaves its subject out ("Since when?"). What they leave out is taken from that question, never from an answer. All
others stay as they are, so that no old topic comes into a new one; where it isn't clear, too. In further languages only
a name after a word such as "and" is understood.
"""

import re
from dataclasses import dataclass
from typing import Final

from leadline.nodes.follow_ups_zh import standalone_in_chinese
from leadline.nodes.languages import language_of
from leadline.nodes.words import content_words, names_in, words_of

_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_OTHER_UNSPACED: Final = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff]")
_STEM: Final = 4  # letters that stay when a word is inflected
_BORROWED: Final = re.compile(r"[?!.…]\s*\(([^()]+)\)\s*$")
_MANY: Final = 3  # words that carry something; of fewer each can have another word for it
_LETTERS: Final = re.compile(r"[^\W\d_]+")
# A pronoun after one of these, with words of its own before, means something in its own question.
_CLAUSE: Final = frozenset(
    """when if because while before after once although unless until whenever wenn weil während bevor nachdem sobald
    obwohl falls damit dass cuando si porque mientras antes después aunque lorsque quand parce pendant avant après
    dès""".split()
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class _Rules:
    """A language's. `impersonal` are phrases whose pronoun stands for nothing; `opener` is how a fragment begins."""

    pronouns: frozenset[str]
    verbs: frozenset[str]  # with one of these and a word of its own a question has a subject
    asking: frozenset[str]
    small: frozenset[str]
    impersonal: re.Pattern[str]
    opener: re.Pattern[str]
    clitic: re.Pattern[str] | None = None  # a pronoun that looks like an article


_RULES: Final = {
    "en": _Rules(
        _words("it its he him his she her hers they them their theirs this that these those there then former latter"),
        _words("is are was were am be do does did has have had can could will would should may might must"),
        _words("who whom whose what which when where why how"),
        _words(
            "a an the and or but so of to in on at by for with from as about not more else exactly since till "
            "often long many much early late"
        ),
        re.compile(
            r"\b(?:is|was|are|were|will|has|have|had|be|been|can|could|may|might|should|would)\s+there\b|"
            r"\bthere\s+(?:is|are|was|were|will|has|have)\b|\b(?:is|was)\s+it\s+\w+\s+(?:to|that|for|if)\b|"
            r"\bit\s+(?:\w+\s+)?takes?\s+(?:to|for)\b|\b(?:does|did|will|would|can)\s+it\s+take\b|"
            r"\bit(?:'s|\s+is|\s+was)\s+\w+\s+(?:to|that)\b|"
            r"\bthis\s+(?:year|month|week|morning|evening)\b",
        ),
        re.compile(
            r"(?:and|or|but|so|what\s+about|how\s+about|what\s+of|and\s+what\s+about|also)\b[\s,]*", re.IGNORECASE
        ),
    ),
    "de": _Rules(
        _words(
            """er ihm ihn sie ihr ihre ihrem ihren ihrer ihres sein seine seinem seinen seiner seines es dieser diese
            dieses diesem diesen jener jene jenes davon dafür damit dazu darin daran dabei darüber dort deren dessen
            das"""
        ),
        _words("ist sind war waren hat haben hatte hatten wird werden wurde wurden kann können muss müssen soll darf"),
        _words("wer wen wem wessen was welche welcher welches welchen welchem wann wo wohin woher warum wieso wie"),
        _words(
            """der die das den dem des ein eine einen einem einer und oder aber von vom zu zum zur mit für bei beim im
            in an am auf aus nach seit um denn noch genau dann nicht viel viele oft lange"""
        ),
        re.compile(
            r"\b(?:gibt|gab|geht|ging|regnet|dauert|dauerte)\s+es\b|\bes\s+(?:gibt|gab)\b|"
            r"\bist\s+es\s+\w+,?\s+(?:zu|dass|wenn)\b|\bsein\s*[?.!]*$|\bdas\s+(?!\W*$)(?!ist\b|war\b|gesagt\b|gemacht\b)\w+",
        ),
        re.compile(
            r"(?:und|oder|aber)\s+(?:(?:wie\s+ist\s+es|was\s+ist)\s+)?(?:(?:mit|bei|für|in|von)\b\s*)?|"
            r"(?:was\s+ist\s+mit|wie\s+(?:sieht|steht)\s+es\s+(?:bei|mit|um)|wie\s+ist\s+es\s+bei)\b[\s,]*",
            re.IGNORECASE,
        ),
    ),
    "es": _Rules(
        _words(
            """él ella ellos ellas lo le les su sus suyo suya esto eso ese esa esos esas este esta estos estas aquel
            aquella allí ahí entonces"""
        ),
        _words("es son era eran fue fueron está están hay ha han tiene tienen puede pueden debe deben"),
        _words("quién quiénes qué cuál cuáles cuándo dónde adónde cómo cuánto cuánta cuántos cuántas"),
        _words("el la los las un una y e o pero de del a al en por para con sin desde hasta se más que no"),
        re.compile(r"\blo\s+(?:que|más|mejor)\b|\beste?a?\s+(?:año|mes|semana)\b"),
        re.compile(
            r"(?:y|e|o|pero)\s+(?:(?:qué|que)\s+(?:pasa|hay|tal)\s+)?(?:(?:con|en|de|para)\b\s*)?(?:el\b|la\b)?\s*|"
            r"(?:qué\s+(?:pasa|hay|tal)\s+(?:con|de)|qué\s+tal)\b[\s,]*",
            re.IGNORECASE,
        ),
    ),
    "fr": _Rules(
        _words(
            """il ils elle elles lui leur leurs son sa ses celui celle ceux cela ça ce cet cette ces dedans alors
            celui-ci celle-ci"""
        ),
        _words("est sont était étaient fut a ont avait peut peuvent doit doivent"),
        _words("qui que quoi quand où quel quelle quels quelles pourquoi comment combien"),
        _words(
            "le la les l un une des du de d et ou mais en dans pour par avec sur à au aux depuis t n ne pas plus qu"
        ),
        re.compile(
            r"\best[- ]ce\b|\bqu['’]est[- ]ce\b|\bil\s+(?:y\s+a|faut|pleut)\b|\by\s+a[- ]t[- ]il\b|"
            r"\bexiste[- ]t[- ]il\b|"
            r"\best[- ]il\s+\w+\s+(?:de|que|d)\b|\bcette\s+(?:année|semaine)\b|\bce\s+(?:qui|que|mois)\b",
        ),
        re.compile(
            r"(?:et|ou|mais)\s+(?:(?:qu['’]en\s+est-il|quid)\s+(?:de|du|d['’])\s*)?"
            r"(?:(?:pour|chez|à|avec|dans|de)\b\s*)?(?:l['’]|le\b|la\b)?\s*|"
            r"(?:qu['’]en\s+est-il\s+(?:de|du|d['’])|quid\s+(?:de|du|d['’]))\s*",
            re.IGNORECASE,
        ),
        re.compile(r"\bl['’](?=a\b|ont\b|avait\b|avaient\b|eut\b)"),
    ),
}
_ANY_OPENER: Final = re.compile(r"(?:and|or|und|oder|y|e|o|et|ou|en|och|og|a|i|и|а)\s+", re.IGNORECASE)


def standalone_by_rule(question: str, previous: str | None) -> str:
    """A follow-up with what it leaves out taken from the previous question; other questions as they are.

    "And Globex?" puts its name in the place of the one name of the previous question. A pronoun or a question without a
    subject borrows the previous question's names, or its content words where it has none.
    """
    if not previous or _OTHER_UNSPACED.search(question):
        return question
    if _HAN.search(question):
        return standalone_in_chinese(question, previous)
    rules = _RULES.get(_language(question, previous))
    opener = rules.opener if rules else _ANY_OPENER
    begun = opener.match(question.lstrip(" ¿¡"))
    rest = question.lstrip(" ¿¡")[begun.end() :] if begun else question
    own = _names(f"- x {rest}" if begun else question)  # after the opener no capital is that of a sentence's start
    if begun and own and _is_only(own, rest, rules):
        return _about_another(question, own, previous)
    if rules and _leans(question, rest, begun is not None, own, rules):
        return _with(question, _about(previous) or _content(previous, rules))
    return question


def asks_the_same(rewritten: str, asked: str, conversation: str) -> bool:
    """Whether a question that a model made to stand alone can be trusted to be the one that was asked.

    No name or number comes from elsewhere than the conversation, no more than half of its words do, and of a question
    of several words at least half are kept: an answer to it and a question about something else are not the same.
    """
    known = f"{conversation} {asked}".lower()
    if any(number not in known for number in re.findall(r"\d+", rewritten)):
        return False
    if _HAN.search(rewritten) or _OTHER_UNSPACED.search(rewritten):
        return True
    names = [] if language_of(rewritten) == "de" else _names(rewritten)  # in German every noun looks like one
    if any(word[:_STEM].lower() not in known for name in names for word in words_of(name)):
        return False
    said = [word.lower()[:_STEM] for word in content_words(rewritten)]
    kept = [word.lower()[:_STEM] in rewritten.lower() for word in content_words(asked)]
    return 2 * sum(word in known for word in said) >= len(said) and (len(kept) < _MANY or 2 * sum(kept) >= len(kept))


def _names(text: str) -> list[str]:
    """The names, the capital behind an opening mark being that of a sentence's start."""
    return names_in(text.lstrip(" ¿¡"))


def _borrowed(question: str) -> list[str]:
    """What a follow-up took from the question before it: it is about that still."""
    found = _BORROWED.search(question)
    return found[1].split(", ") if found else []


def _about(question: str) -> list[str]:
    """The names in a question, and what it has borrowed."""
    borrowed = _borrowed(question)
    said = _BORROWED.sub("", question)
    return [*borrowed, *(name for name in _names(said) if name not in borrowed)]


def _language(question: str, previous: str) -> str:
    """The question's own; a few words can belong to several, then that of the one before."""
    told = language_of(question)
    before = language_of(previous)
    words = set(_LETTERS.findall(question.lower()))
    rules = _RULES.get(before)
    if told != before and rules and words & (rules.asking | rules.pronouns | rules.small) and len(words) <= 2:
        return before
    return told


def _is_only(names: list[str], rest: str, rules: _Rules | None) -> bool:
    """Whether nothing is asked but one name."""
    left = rest
    for name in names:
        left = left.replace(name, " ")
    small = rules.small if rules else frozenset[str]()
    return len(names) == 1 and not set(_LETTERS.findall(left.lower())) - small - {"s"}


def _about_another(question: str, own: list[str], previous: str) -> str:
    theirs = [name for name in _borrowed(previous) or _names(previous) if name.lower() != own[0].lower()]
    if len(theirs) == 1:
        return previous.replace(theirs[0], own[0])
    of_names = {word.lower() for name in theirs for word in name.split()}
    return _with(question, [word for word in content_words(previous) if word.lower() not in of_names])


def _leans(question: str, rest: str, opened: bool, own: list[str], rules: _Rules) -> bool:
    """Whether it can't be understood without the question before."""
    return _has_pronoun(question, own, rules) or _lacks_subject(rest, opened, own, rules)


def _has_pronoun(question: str, own: list[str], rules: _Rules) -> bool:
    """Whether a pronoun stands in it that means nothing named before it, in its own words."""
    said = question.lstrip(" ¿¡")
    said = rules.impersonal.sub(" ", said[:1].lower() + said[1:])
    if rules.clitic:
        said = rules.clitic.sub(" il ", said)
    places = [match for match in _LETTERS.finditer(said) if match.group() in rules.pronouns]
    places = [match for match in places if match.group() != "that" or not _joins(said[: match.start()], rules)]
    if not places:
        return False
    before = said[: places[0].start()]
    own_before = [name for name in own if name.lower() in before.lower()]
    words = _LETTERS.findall(before.lower())
    in_clause = any(
        word in _CLAUSE and place and any(w not in rules.small | rules.asking | rules.verbs for w in words[:place])
        for place, word in enumerate(words)
    )
    return not own_before and not in_clause


def _joins(before: str, rules: _Rules) -> bool:
    """Whether "that" stands behind a word of the question's own, to which it joins more."""
    words = _LETTERS.findall(before.lower())
    return bool(words) and words[-1] not in rules.small | rules.asking | rules.verbs


def _lacks_subject(rest: str, opened: bool, own: list[str], rules: _Rules) -> bool:
    words = _LETTERS.findall(rest.lower())
    known = rules.small | rules.asking | rules.verbs
    content = [word for word in words if word not in known]
    asks = any(word in rules.asking for word in words)
    if own and not (len(content) <= 1 and asks and not set(words) & rules.verbs and _is_noun(own, content)):
        return False
    if not content:
        return bool(words)
    return len(content) == 1 and (asks or opened) and not set(words) & rules.verbs


def _is_noun(own: list[str], content: list[str]) -> bool:
    """Whether what passes for a name is the one word of the question: German writes every noun so."""
    return [name.lower() for name in own] == content


def _content(previous: str, rules: _Rules) -> list[str]:
    known = rules.small | rules.asking | rules.verbs | rules.pronouns
    return [word for word in content_words(previous) if word.lower() not in known]


def _with(question: str, borrowed: list[str]) -> str:
    said = {word.lower() for word in words_of(question)}
    left_out = [word for word in borrowed if word.lower() not in said]
    return f"{question.rstrip()} ({', '.join(left_out)})" if left_out else question
