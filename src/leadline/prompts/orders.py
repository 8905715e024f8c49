"""Tells sentences that give orders to a language model from those that tell something to a person.

Knows signs of such orders; one alone proves nothing, since notices and manuals give orders too ("Disregard the previous
instructions"). Two together do.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

_I = re.IGNORECASE
_SIGNS = (
    # somebody speaks as the one who runs the model, or to the model
    re.compile(
        r"^\W*(?:system|assistant|developer|instructions?|new instructions?)\s*[:：]|<\|?\s*/?\s*system\b"
        r"|\b(?:dear|hey|hello|attention|note to|to the|to any)\s+(?:the\s+|any\s+)?"
        r"(?:AI|AI assistant|assistant|language model|LLM|chatbot)s?\b",
        _I,
    ),
    # what it was told is to count no more
    re.compile(
        r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?]{0,40}"
        r"\b(?:instructions?|prompts?|the user(?! manual)|user'?s|guidelines|system messages?)\b"
        r"|\bignor(?:iere|a|ez|e)\b[^.!?]{0,30}\b(?:anweisungen|instrucciones|instructions)\b"
        r"|忽略.{0,12}(?:指令|指示|提示)",
        _I,
    ),
    # what it is to say, and nothing else
    re.compile(
        r"\b(?:reply|respond|answer|output|print|say|write)\b\W{0,2}(?:back\s+)?"
        r"\b(?:only|just|nothing but|exactly|solely)\b"
        r"|\b(?:reply|respond|answer)\b[^.!?]{0,8}\b(?:every|all|any|each)\b[^.!?]{0,20}\b(?:with|by saying)\b"
        r"|\b(?:only|just)\s+(?:reply|respond|answer|output|print|say)\b|\bantworte\b[^.!?]{0,12}\bnur\b"
        r"|\bresponde\b[^.!?]{0,12}\bs[oó]lo\b|\bréponds?\b[^.!?]{0,12}\b(?:seulement|uniquement)\b"
        r"|只(?:回答|回复|输出)",
        _I,
    ),
    # how it is to judge itself
    re.compile(r"\bset\b[^.!?]{0,9}\bgrounded\s+(?:to|=)|[\"']?grounded[\"']?\s*[:=]\s*true", _I),
    # whom it is
    re.compile(
        r"\b(?:you are|act as)\b[^.!?]{0,20}\b(?:now an?|an? AI|(?:AI |helpful )assistant|chatbot|language model)\b", _I
    ),
    re.compile(
        r"\b(?:reveal|print|show|repeat|leak)\b[^.!?]{0,25}\b(?:system prompt|api keys?|your instructions)\b",
        _I,
    ),
)
_ABOUT_THEM = re.compile(
    r"\b(?:prompts?|injections?|jailbreaks?|instructions?|ignore|disregard|orders?|system messages?|grounded)\b", _I
)
ENOUGH = 2
_COUNTS_NO_MORE = 1  # its place among the signs


def orders_among(sentences: Sequence[str]) -> set[int]:
    """The places of the sentences that, alone or with the next one, are orders to a model."""
    signs = [_signs(sentence) for sentence in sentences]
    found = {place for place, seen in enumerate(signs) if len(seen) >= ENOUGH}
    for place, (one, other) in enumerate(pairwise(signs)):
        if one and other and len(one | other) >= ENOUGH and _COUNTS_NO_MORE in one | other:
            found |= {place, place + 1}
    return found


def asks_about_orders(question: str) -> bool:
    """Whether such sentences may be just what a person asks about."""
    return bool(_ABOUT_THEM.search(question))


def _signs(sentence: str) -> set[int]:
    return {number for number, sign in enumerate(_SIGNS) if sign.search(sentence)}
