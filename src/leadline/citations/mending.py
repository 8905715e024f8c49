"""Takes sentences out of an answer, or puts others in their place, so that what stands around them still reads.

Pure functions over a checked text and its claims. Doesn't judge: callers check the text anew.
"""

import re
from collections.abc import Mapping, Sequence

from leadline.citations.answers import Claim

_LEAN = re.compile(
    r"(?:it|its|he|his|she|her|they|their|them|this|these|that|those|such|both|also|however|therefore|thus|then|but|and|or"
    r"|moreover|furthermore|additionally|similarly|likewise|consequently|er|sie|es|dies\w*|il|elle|ils|ello|este|esto)\b",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])?[ \t]*$")


def without(text: str, claims: Sequence[Claim], left_out: Sequence[Claim]) -> str:
    """The text without these sentences, and without those right behind one of them that lean on it (It also …)."""
    gone, out = set(left_out), []
    for before, claim in zip([None, *claims], claims, strict=False):
        same_paragraph = before is not None and "\n\n" not in text[before.end : claim.start]
        if claim in gone or (before in gone and same_paragraph and _LEAN.match(claim.text)):
            gone.add(claim)
            out.append(claim)
    return _replaced(text, dict.fromkeys(out, ""))


def rewritten(text: str, sentences: Mapping[Claim, str]) -> str:
    """The text with other sentences in the place of these; an empty one takes its sentence out."""
    return _replaced(text, sentences)


def _replaced(text: str, sentences: Mapping[Claim, str]) -> str:
    for claim in sorted(sentences, key=lambda claim: -claim.start):
        before, new, behind = text[: claim.start], sentences[claim].strip(), text[claim.end :]
        text = f"{before}{new}{behind}" if new else _closed(before, behind)
    return text.strip()


def _closed(before: str, behind: str) -> str:
    """The two parts around a gap, without the bullet of an empty item, doubled blanks and lines left empty."""
    head, newline, line = before.rpartition("\n")
    if _BULLET.match(line) and not behind.partition("\n")[0].strip():
        rest = behind.partition("\n")[2]
        return f"{head}{newline}{rest}" if rest else head
    return (
        f"{before.rstrip(' ')} {behind.lstrip(' ')}" if before.strip() and line.strip() else before + behind.lstrip(" ")
    )
