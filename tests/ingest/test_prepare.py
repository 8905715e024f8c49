"""From a file to a source draft."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.errors import EmptyFile
from leadline.ingest.prepare import detect_language, prepare
from leadline.models.minilm import MiniLM

EXAMPLES = Path(__file__).parents[2] / "examples" / "documents"


def test_a_draft_says_what_the_file_is(tokenizer: MiniLM, tmp_path: Path) -> None:
    """Hash of the bytes, name without folders, encoding and language; no path of this machine anywhere."""
    data = "# Prüfung\n\nDie Prüfgröße des Ventils beträgt fünf Euro je Stück und Monat.".encode("cp1252")
    path = tmp_path / "pruefung.md"
    path.write_bytes(data)
    draft = prepare(path, "manuals/pruefung.md", tokenizer)

    assert draft.file_hash == hashlib.sha256(data).hexdigest()
    assert (draft.uri, draft.file_name) == ("manuals/pruefung.md", "pruefung.md")
    assert draft.metadata == {"title": "Prüfung", "encoding": "cp1252", "language": "de"}
    assert str(tmp_path) not in repr(draft)


def test_the_same_file_gives_the_same_draft(tokenizer: MiniLM) -> None:
    """Nothing in a draft depends on the run."""
    path = EXAMPLES / "tide-gauge-manual.pdf"

    assert prepare(path, path.name, tokenizer) == prepare(path, path.name, tokenizer)


def test_a_blank_page_is_refused_with_its_number(tokenizer: MiniLM, make_pdf: Callable[..., bytes]) -> None:
    """Whoever sees the message knows which page to scan."""
    with pytest.raises(EmptyFile, match="Page 1"):
        prepare(make_pdf([""]), "scan.pdf", tokenizer)


@pytest.mark.parametrize("text", ["", "42", "E-217", "OK", "x1 y2 z3"])
def test_a_language_is_named_only_when_it_is_clear(text: str) -> None:
    """Codes and numbers have none."""
    assert detect_language(text) is None


@pytest.mark.parametrize(
    ("name", "fact", "page"),
    [
        ("harbour-handbook.md", "dredged to 7.2 metres below chart datum", None),
        ("tide-gauge-manual.pdf", "E-217: The battery voltage is below 11.4 volts.", 3),
        ("tide-gauge-manual.pdf", "Replace the battery every 4 years", 4),
        ("emergency-plan.pdf", "The boom is 220 metres long", 1),
        ("crane-working-rules.docx", "stops when gusts reach 17 m/s", None),
        ("crane-working-rules.docx", "Crane: C2; Maker's number: QK-2240; Greatest load t: 40", None),
        ("port-dues-2026.csv", "Code: TG-01; Service: Tug Anvil; Unit: per hour begun; Price EUR: 920.00", None),
        ("weather-station.html", "Step: Red; Mean wind: 20 m/s", None),
        ("hinweise-sportboote.md", "Das Liegegeld beträgt 2,40 Euro", None),
        ("crossing-the-bar.txt", "I hope to see my Pilot face to face", None),
    ],
)
def test_the_example_documents_hold_their_facts(tokenizer: MiniLM, name: str, fact: str, page: int | None) -> None:
    """Each format gives its words, on the right page."""
    draft = prepare(EXAMPLES / name, name, tokenizer)

    assert [chunk.page for chunk in draft.chunks if fact in chunk.text] == [page]
