"""Made-up data for the benchmarks, the same every time: texts whose words are as frequent as in real ones, and vectors
in clusters.

Vectors drawn one by one have no near neighbours at that width, and a graph of them finds few of the nearest.
"""

import random
from collections.abc import Iterator
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

WIDTH = 384
WORDS = 50_000  # how many different ones there are
SPREAD = 0.6  # how far a vector is from the centre of its cluster, where that is 1 long
A_CLUSTER = 100
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"


def texts(count: int, *, length: int = 100, seed: int = 7) -> Iterator[str]:
    """Texts of `length` words, the n-th most frequent word 1/n as frequent as the first (Zipf's law)."""
    draw = random.Random(seed)
    vocabulary = [_word(number) for number in range(WORDS)]
    weights = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    for _ in range(count):
        yield " ".join(draw.choices(vocabulary, cum_weights=weights, k=length))


def vectors(count: int, *, seed: int = 7, of: int | None = None) -> NDArray[np.float32]:
    """Unit vectors of width 384 around the centres that go with `of` vectors (as many as `count`, if not given).

    Another seed gives other vectors around the same centres.
    """
    centres = np.random.default_rng(1).standard_normal((max(1, (of or count) // A_CLUSTER), WIDTH), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    draw = np.random.default_rng(seed)
    noise = draw.standard_normal((count, WIDTH), dtype=np.float32) * np.float32(SPREAD / WIDTH**0.5)
    found: NDArray[np.float32] = centres[draw.integers(len(centres), size=count)] + noise
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found


def _word(number: int) -> str:
    """Another word for each number: syllables, at least two."""
    syllables: list[str] = []
    while number or len(syllables) < 2:
        number, sound = divmod(number, len(CONSONANTS) * len(VOWELS))
        consonant, vowel = divmod(sound, len(VOWELS))
        syllables.append(CONSONANTS[consonant] + VOWELS[vowel])
    return "".join(syllables)
