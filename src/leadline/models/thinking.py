"""Takes out of a streamed reply what a model says to itself.

Knows the tags that models think between, split over pieces as they come. Doesn't know providers: those that send
thinking beside the reply need none of this.
"""

import re
from dataclasses import dataclass

_PAIRS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "[think]": "[/think]",
}
_TAG = re.compile("|".join(map(re.escape, [*_PAIRS, *_PAIRS.values()])), re.IGNORECASE)
_CLOSER = re.compile("|".join(map(re.escape, _PAIRS.values())), re.IGNORECASE)
_LONGEST = max(map(len, _PAIRS.values()))


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of the reply. `restart`: all that came before was thinking, whose beginning was not marked."""

    text: str
    restart: bool = False


class ThinkingFilter:
    """Passes a reply on without its thinking, holding back no more than the beginning of a possible tag.

    `begun`: the model is known to think from its first word, without an opening tag; then all is held until a
    closing one. If none comes, it was a reply after all, shown at the end.
    """

    def __init__(self, *, begun: bool = False) -> None:
        self._held = ""
        self._closer = "</think>" if begun else ""
        self._begun = begun
        self._assumed: list[str] | None = [] if begun else None

    @property
    def begun(self) -> bool:
        """Whether this reply thought from its first word on, or was said to."""
        return self._begun

    def feed(self, text: str) -> Shown:
        """What can be shown after this piece."""
        self._held += text
        return self._passed()

    def flush(self) -> Shown:
        """What is left at the end: a tag that was only begun is text, thinking without an end stays unsaid."""
        shown = self._passed()
        rest = "" if self._closer else self._held
        if self._assumed is not None:
            rest, self._begun = without_thinking("".join([*self._assumed, self._held])), False
        self._held, self._closer, self._assumed = "", "", None
        return Shown(shown.text + rest, shown.restart)

    def _passed(self) -> Shown:
        shown, restart = "", False
        while self._held:
            found = self._find()
            if found is None:
                break
            before, tag = self._held[: found.start()], found.group().lower()
            self._held = self._held[found.end() :]
            if self._closer:
                self._closer, self._assumed = "", None
            elif tag in _PAIRS:
                shown += before
                self._closer = _PAIRS[tag]
            else:
                shown, restart, self._begun = "", True, True
        certain = len(self._held) - _uncertain(self._held)
        if self._closer:
            if self._assumed is not None:
                self._assumed.append(self._held[:certain])
        else:
            shown += self._held[:certain]
        self._held = self._held[certain:]
        return Shown(shown, restart)

    def _find(self) -> re.Match[str] | None:
        if self._assumed is not None:
            return _CLOSER.search(self._held)  # nobody said which of them it will be
        if not self._closer:
            return _TAG.search(self._held)
        return re.search(re.escape(self._closer), self._held, re.IGNORECASE)


def without_thinking(text: str) -> str:
    """The whole reply without its thinking, also where only the end of that is marked."""
    thinking = ThinkingFilter()
    first, last = thinking.feed(text), thinking.flush()
    return last.text if last.restart else first.text + last.text


def _uncertain(text: str) -> int:
    """How many characters at the end may be the beginning of a tag."""
    for length in range(min(_LONGEST - 1, len(text)), 0, -1):
        tail = text[-length:].lower()
        if any(tag.startswith(tail) for pair in _PAIRS.items() for tag in pair):
            return length
    return 0
