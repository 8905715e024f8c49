"""Cuts text that is longer than a model reads."""


def cut(text: str, spans: list[tuple[int, int]], room: int) -> list[str]:
    """`text` in pieces of at most `room` tokens, each overlapping the next by a quarter; whole if it fits.

    `spans` are start and end character of each token of `text`, `room` at least 1.
    """
    if len(spans) <= room:
        return [text]
    starts = [*range(0, len(spans) - room, max(room - room // 4, 1)), len(spans) - room]
    return [text[spans[start][0] : spans[start + room - 1][1]] for start in starts]
