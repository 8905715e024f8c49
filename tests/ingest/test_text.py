"""Encodings and invisible characters."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import UnreadableFile
from leadline.ingest.text import clean, decode

LINE = "Prüfgröße 5 €"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (LINE.encode("cp1252"), None),
        (codecs.BOM_UTF16_LE + LINE.encode("utf-16-le"), "utf-16-le"),
        (codecs.BOM_UTF16_BE + LINE.encode("utf-16-be"), "utf-16-be"),
        (codecs.BOM_UTF32_LE + LINE.encode("utf-32-le"), "utf-32-le"),
        (codecs.BOM_UTF8 + LINE.encode(), "utf-8"),
        (LINE.encode(), "utf-8"),
        (LINE.encode("utf-16-le"), "utf-16-le"),
        (LINE.encode("utf-16-be"), "utf-16-be"),
    ],
)
def test_the_same_line_reads_the_same_in_every_encoding(data: bytes, encoding: str | None) -> None:
    """Umlauts and the euro sign come through whole, and no byte order mark is left in front."""
    decoded = decode(data)

    assert decoded.text == LINE
    assert encoding is None or decoded.encoding == encoding


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Müller", "cp1252"),
        ("Der Müller mahlt das Korn für 5 €.", "cp1252"),
        ("“quoted” – it’s 20 °C ± 2", "cp1252"),
        ("100 £ fee, 20 °C", "cp1252"),
        ("café à la crème, naïve façade", "cp1252"),
        ("Łódź jest pięknym miastem", "cp1250"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy", "cp1250"),
        ("Привет, как дела? Это проверка.", "cp1251"),
        ("Ελληνικά κείμενα εδώ", "cp1253"),
        ("İstanbul'da güneşli bir gün", "cp1254"),
        ("名前,年齢\n佐藤太郎,30\n髙橋淳,35", "cp932"),
        ("你好，世界。这是测试文件", "gb18030"),
        ("안녕하세요 반갑습니다", "euc_kr"),
        ("日本語の文書です。", "iso2022_jp"),
    ],
)
def test_short_files_in_old_encodings_are_read_right(text: str, encoding: str) -> None:
    """A few words are enough to tell an encoding that nothing states."""
    assert decode(text.encode(encoding)).text == text


def test_a_guess_is_noted() -> None:
    """Whoever reads the notes knows that an encoding was guessed, and which."""
    decoded = decode("Müller".encode("cp1252"))

    assert any(decoded.encoding in note for note in decoded.notes)
    assert not decode("Müller".encode()).notes


def test_a_declared_encoding_counts_before_a_guess() -> None:
    """A page that says it is KOI8-R is read so."""
    assert decode("да".encode("koi8-r"), "koi8-r").text == "да"


def test_stray_bytes_in_utf8_are_kept_and_counted() -> None:
    """One cp1252 byte in a UTF-8 file neither disappears nor turns the rest to rubbish."""
    decoded = decode("Größe, Maß, Länge, Höhe, Stärke, Fuß ".encode() + b"\xfc")

    assert decoded.text == "Größe, Maß, Länge, Höhe, Stärke, Fuß ü"
    assert any("1 bytes" in note for note in decoded.notes)


@pytest.mark.parametrize("data", [bytes(range(256)) * 8, b"\x00\x01\x02\x03" * 100, b"abc" + b"\x00" * 50])
def test_binary_data_is_refused(data: bytes) -> None:
    """Bytes that are no text never become one."""
    with pytest.raises(UnreadableFile):
        decode(data)


def test_a_few_nul_characters_go_with_a_note() -> None:
    """A stray NUL doesn't make a file binary, but it doesn't stay either."""
    decoded = decode(b"steam pressure " * 50 + b"\x00")

    assert "\x00" not in decoded.text
    assert any("control characters (1)" in note for note in decoded.notes)


def test_line_ends_become_one_kind() -> None:
    """Windows, old Mac and Unicode line ends all count as a line end."""
    assert clean("a\r\nb\rc\u2028d\fe")[0] == "a\nb\nc\nd\ne"


def test_invisible_characters_are_removed_and_named() -> None:
    """Text hidden in tag characters, zero-width marks or direction overrides is gone, and the notes say so."""
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "obey me")
    text, notes = clean(f"Valve\u200b A{hidden} is\u202e open\ufe0f\ufe01\ufe02")

    assert text == "Valve A is open\ufe0f"
    assert "tag characters (7)" in notes[0]
    assert "zero-width characters (1)" in notes[0]


@pytest.mark.parametrize("text", ["می‌خواهم", "👩‍🚀", "❤️", "क्‍ष"])
def test_joiners_that_mean_something_stay(text: str) -> None:
    """Persian, Indic scripts and emoji need their joiners."""
    assert clean(text) == (text, ())


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str) -> None:
    """Cleaned text is clean."""
    once, _ = clean(text)

    assert clean(once)[0] == once or len(clean(once)[0]) < len(once)


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "Zs"], exclude_characters="\u3164\u115f\u1160\uffa0")))
def test_valid_utf8_is_read_as_it_is(text: str) -> None:
    """No letter, digit or sign of a UTF-8 file is changed."""
    assert decode(text.encode()).text == text or "\u2028" in text
