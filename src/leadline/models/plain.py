"""Characters that no text may have, taken out of what a model writes.

Half of a pair of surrogates can't be written as UTF-8, NUL not into every store, and control characters steer
terminals. Knows text only.
"""

import re

# All control characters but the new line and the tab.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_RETURN = re.compile(r"\r\n?")
_HALF = re.compile(r"[\ud800-\udfff]")


def plain(text: str) -> str:
    """The text with � for half a pair, a blank for a control character, and \\n for every kind of line end."""
    if _HALF.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub(" ", _RETURN.sub("\n", text))


class PlainStream:
    """`plain` over pieces: the same text comes out however it is cut. Holds back one character at most."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """What is certain after this piece."""
        text = self._held + text
        open_end = "\ud800" <= text[-1:] <= "\udbff" or text.endswith("\r")
        self._held = text[-1] if open_end else ""
        return plain(text[:-1] if open_end else text)

    def flush(self) -> str:
        """What was held back, at the end."""
        rest, self._held = plain(self._held), ""
        return rest
