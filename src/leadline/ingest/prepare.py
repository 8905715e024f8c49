"""From a file to a source draft: loaded, its language told, cut into chunks. Nothing is embedded or stored here.

Synchronous and free of shared state: callers run it in a thread or a process of their own.
"""

import hashlib
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from leadline.drafts import FieldValue, SourceDraft
from leadline.errors import EmptyFile, UnreadableFile
from leadline.ingest import loaders
from leadline.ingest.chunking import chunk
from leadline.ingest.extracted import Extracted, Limits, too_slow
from leadline.ingest.layout import layout_of
from leadline.models.base import Tokenizer

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

Load = Callable[[bytes, str, Limits], Extracted]

LANGUAGE_SAMPLE = 2000
MIN_LETTERS = 24
MIN_PROBABILITY = 0.9


def prepare(  # noqa: PLR0913 - what a draft depends on
    source: Path | bytes,
    uri: str,
    tokenizer: Tokenizer,
    limits: Limits | None = None,
    chunk_tokens: int = 200,
    load: Load = loaders.load,
    ended: Callable[[], bool] = lambda: False,
) -> SourceDraft:
    """The draft of one file or upload.

    `uri` identifies it in its collection; its last part is the file name and tells the format. `load` is
    `loaders.load`, which can't be ended, or `ReadingProcess.load`; `ended` says, from any thread, that nobody waits for
    it any more. Raises the errors of `loaders.load`, FileTooLarge also where it takes too long, and EmptyFile where
    nothing is left to search.
    """
    limits = limits or Limits()
    until = time.monotonic() + limits.max_seconds
    file_name = PurePath(uri.replace("\\", "/")).name
    data = loaders.read_bytes(source, limits)
    extracted = load(data, file_name, limits)
    language = detect_language(extracted.text)

    def check() -> None:
        if ended():
            raise UnreadableFile("Reading was ended.")
        if time.monotonic() > until:
            raise too_slow(limits.max_seconds)

    chunks, notes = chunk(extracted, tokenizer, chunk_tokens=chunk_tokens, language=language or "en", check=check)
    if not chunks:
        raise EmptyFile("The file holds no text.")
    metadata: dict[str, FieldValue] = dict(extracted.metadata)
    if extracted.encoding:
        metadata["encoding"] = extracted.encoding
    if language:
        metadata["language"] = language
    return SourceDraft(
        uri=uri,
        file_name=file_name,
        file_hash=hashlib.sha256(data).hexdigest(),
        chunks=chunks,
        metadata=metadata,
        notes=(*extracted.notes, *notes),
        layout=layout_of(extracted, chunks),
    )


def detect_language(text: str) -> str | None:
    """ISO 639-1 code of a text's language, or None where it is too short or too mixed to tell."""
    middle = max(0, (len(text) - LANGUAGE_SAMPLE) // 2)
    sample = text[:LANGUAGE_SAMPLE] if len(text) < 2 * LANGUAGE_SAMPLE else text[middle : middle + LANGUAGE_SAMPLE]
    if sum(map(str.isalpha, sample)) < MIN_LETTERS:
        return None
    code, probability = _identifier().classify(sample)
    return str(code) if float(probability) >= MIN_PROBABILITY else None


@lru_cache(maxsize=1)
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
