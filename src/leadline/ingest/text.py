"""From bytes to clean text: which encoding it is, and what of it nobody could see.

Knows encodings and invisible characters. Knows no file format. No byte is ever dropped without a word: what can't
be decoded is refused or named in a note, and every guess is named too.
"""

import codecs
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

from leadline.errors import UnreadableFile

BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The order breaks ties: the encodings of the web by how often they are met.
SINGLE_BYTE = (
    *("cp1252", "cp1250", "iso8859_2", "cp1251", "cp1253", "cp1254"),
    *("cp1257", "cp1255", "cp1256", "koi8_r", "cp850", "mac_roman"),
)
MULTI_BYTE = ("cp932", "gb18030", "big5", "euc_kr", "euc_jp")
SAMPLE_BYTES = 64_000
MIN_HIGH_BYTES = 6
RUN_SHARE = 0.5
"""Accents stand alone or in pairs between ASCII letters. Where more of the non-ASCII bytes than this share come in
longer runs, the script isn't Latin."""
MAX_CONTROL_SHARE = 0.01
MIN_VALID_SEQUENCES = 5
"""Valid UTF-8 sequences to each invalid byte before a file counts as damaged UTF-8 and not as something else."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Clean text, the encoding it was read with, and what a person should know of it."""

    text: str
    encoding: str
    notes: tuple[str, ...] = ()


def decode(data: bytes, declared: str | None = None) -> Decoded:
    """Decodes a text file and cleans it (see `clean`).

    A byte order mark wins, then valid UTF-8, then the `declared` encoding, then a guess, which is noted.
    Raises UnreadableFile for what isn't text.
    """
    text, encoding, notes = _decode(data, declared)
    if _control_share(text) > MAX_CONTROL_SHARE:
        raise UnreadableFile("The file holds binary data, not text.", hint="Check that its name has the right ending.")
    cleaned, more = clean(text)
    return Decoded(cleaned, encoding, (*notes, *more))


def _decode(data: bytes, declared: str | None) -> tuple[str, str, tuple[str, ...]]:
    for bom, encoding in BOMS:
        if data.startswith(bom):
            return _strict(data[len(bom) :], encoding), encoding, ()
    if (wide := _wide_encoding(data)) is not None:
        return _strict(data, wide), wide, (f"The file has no byte order mark; read as {wide.upper()}.",)
    if b"\x1b$" in data and (text := _attempt(data, "iso2022_jp")) is not None:
        return text, "iso2022_jp", ()
    if (text := _attempt(data, "utf-8")) is not None:
        return text, "utf-8", ()
    if declared and (text := _attempt(data, declared)) is not None:
        return text, codecs.lookup(declared).name, ()
    if (mended := _damaged_utf8(data)) is not None:
        return mended
    encoding = _guess(data)
    return data.decode(encoding), encoding, (f"The encoding isn't stated; {encoding} fits best.",)


def _attempt(data: bytes, encoding: str) -> str | None:
    """The text, or None where the bytes don't fit, or the name is no text encoding."""
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _strict(data: bytes, encoding: str) -> str:
    text = _attempt(data, encoding)
    if text is None:
        raise UnreadableFile(
            f"The file says it is {encoding.upper()}, but its bytes aren't.", hint="Save it again as UTF-8."
        )
    return text


def _wide_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark: the zero bytes of ASCII characters all stand at the same places."""
    sample = data[:4096]
    if len(data) % 2 or len(sample) < 4 or 0 not in sample:
        return None
    zeros = [sample[i::4].count(0) / len(sample[i::4]) for i in range(4)]
    if len(data) % 4 == 0 and zeros[2] > 0.9 and zeros[3] > 0.9 and zeros[0] < 0.1:
        return "utf-32-le"
    if len(data) % 4 == 0 and zeros[0] > 0.9 and zeros[1] > 0.9 and zeros[3] < 0.1:
        return "utf-32-be"
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    if odd > 1.0 and even < 0.1:
        return "utf-16-le"
    if even > 1.0 and odd < 0.1:
        return "utf-16-be"
    return None


def _damaged_utf8(data: bytes) -> tuple[str, str, tuple[str, ...]] | None:
    """Text that is UTF-8 but for a few bytes: those are read as cp1252, the usual thing to slip in, and counted."""
    text = data.decode("utf-8", errors="surrogateescape")
    bad = sum(1 for char in text if "\udc80" <= char <= "\udcff")
    valid = sum(1 for char in text if char > "\x7f") - bad
    if valid < MIN_VALID_SEQUENCES * bad:
        return None
    mended = re.sub("[\udc80-\udcff]", lambda m: bytes([ord(m[0]) - 0xDC00]).decode("cp1252", "replace"), text)
    return mended, "utf-8", (f"{bad} bytes aren't valid UTF-8; they were read as cp1252.",)


def _guess(data: bytes) -> str:
    sample = data[:SAMPLE_BYTES]
    candidates = [name for name in (*SINGLE_BYTE, *MULTI_BYTE) if _attempt(data, name) is not None]
    if not _looks_latin(sample) and (best := _guess_by_coherence(sample, candidates)) is not None:
        return best
    scores = {name: _strangeness(sample.decode(name, "ignore")) for name in candidates if name in SINGLE_BYTE}
    if not scores:
        raise UnreadableFile("The file is in no text encoding that is known.", hint="Save it as UTF-8.")
    return min(scores, key=lambda name: scores[name])


def _looks_latin(sample: bytes) -> bool:
    runs = [len(run) for run in re.findall(rb"[\x80-\xff]+", sample)]
    in_runs = sum(length for length in runs if length > 2)
    return sum(runs) < MIN_HIGH_BYTES or in_runs <= RUN_SHARE * sum(runs)


def _guess_by_coherence(sample: bytes, candidates: list[str]) -> str | None:
    """charset-normalizer's judgement: good on scripts other than Latin, unreliable on a few accented letters."""
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=candidates).best()
    return best.encoding if best is not None and best.encoding in candidates else None


def _strangeness(text: str) -> float:
    """How unlike writing a decoded text is, by the company its non-ASCII characters keep. 0 is natural."""
    total = 0.0
    for i, char in enumerate(text):
        if char <= "\x7f":
            continue
        before, after = text[i - 1 : i], text[i + 1 : i + 2]
        total += _oddity(char, before, after)
    return total


# At home in Icelandic only; their bytes are everyday letters of Turkish and Czech.
_RARE_LETTERS = frozenset("ðÐþÞýÝ")


def _oddity(char: str, before: str, after: str) -> float:
    category = unicodedata.category(char)
    if category == "Cc":
        return 5.0
    if char in _RARE_LETTERS:
        return 0.3
    if category[0] == "L":
        capital_inside = category == "Lu" and before.islower()
        mixed = any(near.isalpha() and _latin(near) != _latin(char) for near in (before, after))
        alone = not before.isalpha() and not after.isalpha()
        return 2.0 * capital_inside + 2.0 * mixed + 0.2 * alone
    if category in {"Pi", "Pf", "Pd", "Po"}:
        return 0.0 if not (before.isalpha() and after.isalpha()) or char in "’·" else 1.0
    if category == "Sc":
        return 1.0 if after.isalpha() or before.isalpha() else 0.1
    return 1.0 if before.isalpha() and after.isalpha() else 0.3


def _latin(char: str) -> bool:
    return char < "\u0250" or "\u1e00" <= char < "\u1f00"


def _control_share(text: str) -> float:
    sample = text[:SAMPLE_BYTES]
    controls = sum(1 for char in sample if char < " " and char not in "\t\n\r\f\v\x1b")
    return controls / max(len(sample), 1)


# Joiners matter inside words of Persian and Indic scripts and inside emoji, nowhere else.
_JOINER = "(?<![^\x00-\u024f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\u024f])"
_HIDDEN = (
    ("control characters", re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")),
    ("zero-width characters", re.compile(f"[\u200b\u2060-\u2065\ufeff\u180e\u034f\ufff9-\ufffb]|{_JOINER}")),
    ("blank fillers", re.compile("[\u115f\u1160\u3164\uffa0]")),
    ("soft hyphens", re.compile("\u00ad")),
    ("direction marks", re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u206f]")),
    ("tag characters", re.compile("[\U000e0000-\U000e007f]")),
    # One selector after a character is how emoji and rare ideographs are written; a run of them hides data.
    (
        "variation selectors",
        re.compile("(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"),
    ),
)
_ANY_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
_NEWLINE = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")


def clean(text: str) -> tuple[str, tuple[str, ...]]:
    """One kind of line end, and no character that a reader can't see. The second value notes what was taken out."""
    text = _NEWLINE.sub("\n", text)
    if _ANY_HIDDEN.search(text) is None:
        return text, ()
    removed: Counter[str] = Counter()
    for name, pattern in _HIDDEN:
        text, removed[name] = pattern.subn("", text)
    found = ", ".join(f"{name} ({count})" for name, count in removed.items() if count)
    return text, (f"Removed, since no reader can see them: {found}.",) if found else ()
