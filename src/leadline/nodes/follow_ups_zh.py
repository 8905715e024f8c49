"""The rules of `follow_ups` for Chinese, which has no spaces and no capitals to tell a name by.

What a question is about is taken to stand before its verb or the word that asks.
"""

import re
from typing import Final

# What Chinese asks with, longest first; without it a question is what it is about.
_ASKING: Final = re.compile(
    r"什么时候|为什么|为何|什么样|是什么|什么|怎么样|怎么|怎样|如何|哪一年|哪年|哪里|哪儿|哪个|哪些|哪|何时|何地|多少|多久|多长|"
    r"多大|多高|多远|几年|几个|几|谁|是否|吗|呢|吧|啊"
)
_PRONOUN: Final = re.compile(
    r"(?<!其)[它他她](?:们)?|(?<![极尤与])其(?![他它中实余次])|这(?![样么])|那(?![样么])|该(?=[公机项产组大])"
)
_FRAGMENT: Final = re.compile(r"^(?:那么?|还有|至于)?\s*(?P<about>[^？?，,]{1,14}?)(?:呢|怎么样)[？?]?\s*$")
_TOPIC: Final = re.compile(r"^(?P<topic>.{2,14}?)(?=是|在|有|位于|的|由|成立|什么|为什么|怎么|如何|多少|何时|哪)")
_SMALL: Final = re.compile(r"[那么的了是在有呢吗啊和与到从自？?。，,！!\s]")
_SAID: Final = re.compile(r"（([^（）]+)）\s*$")


def standalone_in_chinese(question: str, previous: str) -> str:
    """See `follow_ups.standalone_by_rule`."""
    fragment = _FRAGMENT.match(question)
    if fragment and not _PRONOUN.search(fragment["about"]) and not _ASKING.search(fragment["about"]):
        if said := _SAID.search(previous):
            return previous[: said.start(1)] + fragment["about"].strip() + previous[said.end(1) :]
        if topic := _TOPIC.match(previous):
            return previous.replace(topic["topic"], fragment["about"].strip())
        return _with_topic(question, previous)
    alone = _SMALL.sub("", _ASKING.sub("", question))
    if _PRONOUN.search(question) or len(alone) <= 1:
        return _with_topic(question, previous)
    return question


def _with_topic(question: str, previous: str) -> str:
    """The question with what the one before is about: what that borrowed itself, else itself without what it asks."""
    said = _SAID.search(previous)
    topic = _TOPIC.match(previous)
    about = said[1] if said else topic["topic"] if topic else _ASKING.sub("", previous).strip("？?。！! 在是有的")
    return f"{question.rstrip()}（{about}）" if about and about not in question else question
