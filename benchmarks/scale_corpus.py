"""The collection of `scale.py`, of any size and the same every time: documents, and questions about them.

The words and vectors of `made_up.py`, the words as sentences. One text in three mentions people, and the words of their
names are words of other texts too. A question has eight words of one text, the name of a person among them where the
text has one, and a vector near that of the text.
"""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import accumulate, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import made_up

Vectors = NDArray[np.float32]

WIDTH = made_up.WIDTH
CHUNKS_PER_DOCUMENT = 10
WORDS_PER_SENTENCE = 12
PEOPLE = 5_000  # known ones
MOST_PEOPLE = 3  # in one text
FREQUENCIES = list(accumulate(1 / rank for rank in range(1, PEOPLE + 1)))
WORDS_PER_QUESTION = 8
NEARNESS = 0.4  # how far the vector of a question is from that of its text
QUESTIONS = 105
NAME = re.compile(r"[A-Z][a-z]+ [A-Z][a-z]+")
TEXTS, VECTORS, ASKED = "texts.txt", "vectors.npy", "questions.json"


@dataclass(frozen=True, slots=True)
class Document:
    """The texts of its chunks, and their vectors."""

    name: str
    texts: list[str]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, its vector, the text it was made from, and whether it names a person."""

    text: str
    vector: list[float]
    about: str
    named: bool


def write(folder: Path, chunks: int) -> None:
    """Makes a collection of so many chunks, and questions about it, in a new folder."""
    draw = random.Random(7)
    people = _people(draw)
    texts = [_text(draw, words.split(), people) for words in made_up.texts(chunks)]
    vectors = made_up.vectors(chunks)
    asked = [asdict(_question(draw, texts[chunk], vectors[chunk])) for chunk in draw.sample(range(chunks), QUESTIONS)]
    folder.mkdir(parents=True)
    (folder / TEXTS).write_text("\n".join(texts) + "\n", encoding="utf-8")
    np.save(folder / VECTORS, vectors)
    (folder / ASKED).write_text(json.dumps(asked), encoding="utf-8")


def documents(folder: Path, count: int | None = None) -> Iterator[Document]:
    """The first so many documents, or all."""
    vectors = np.load(folder / VECTORS, mmap_mode="r")
    with (folder / TEXTS).open(encoding="utf-8") as file:
        for number in range(len(vectors) // CHUNKS_PER_DOCUMENT if count is None else count):
            start = number * CHUNKS_PER_DOCUMENT
            texts = [line.rstrip("\n") for line in islice(file, CHUNKS_PER_DOCUMENT)]
            yield Document(f"document-{number}", texts, np.array(vectors[start : start + CHUNKS_PER_DOCUMENT]))


def questions(folder: Path) -> list[Question]:
    """The questions."""
    return [Question(**each) for each in json.loads((folder / ASKED).read_text("utf-8"))]


def _people(draw: random.Random) -> list[str]:
    """Names, each of two words of the texts."""
    words = sorted(set(next(made_up.texts(1, length=100_000, seed=1)).split()))
    drawn = (draw.sample(words, 2) for _ in range(PEOPLE))
    return [f"{first.capitalize()} {last.capitalize()}" for first, last in drawn]


def _text(draw: random.Random, words: list[str], people: list[str]) -> str:
    """The words as sentences, and perhaps people in them: the n-th 1/n as often as the first."""
    cuts = range(0, len(words), WORDS_PER_SENTENCE)
    sentences = [[words[cut].capitalize(), *words[cut + 1 : cut + WORDS_PER_SENTENCE]] for cut in cuts]
    if draw.random() < 1 / 3:
        for person in draw.choices(people, cum_weights=FREQUENCIES, k=draw.randint(1, MOST_PEOPLE)):
            draw.choice(sentences[:-1]).insert(draw.randint(2, WORDS_PER_SENTENCE), person)
    return " ".join(f"{' '.join(sentence)}." for sentence in sentences)


def _question(draw: random.Random, text: str, vector: Vectors) -> Question:
    named = NAME.findall(text)[:1]
    words = sorted(set(re.findall("[a-z]+", NAME.sub("", text).lower())))
    aside = np.random.default_rng(draw.getrandbits(32)).standard_normal(WIDTH) * (NEARNESS / WIDTH**0.5)
    near = vector + aside
    asked = " ".join([*draw.sample(words, WORDS_PER_QUESTION - 2 * len(named)), *named])
    return Question(asked, (near / np.linalg.norm(near)).tolist(), text, bool(named))
