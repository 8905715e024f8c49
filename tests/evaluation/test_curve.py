"""The risk–coverage curve as a picture."""

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from leadline.calibration import Calibration, Point, zero_of
from leadline.errors import ConfigError, MissingExtra
from leadline.evaluation.curve import LEFT, RIGHT, TOP, WIDTH, Picture, check_picture, save_curve, svg, ticks

SVG = "{http://www.w3.org/2000/svg}"


def calibration(total: int = 100) -> Calibration:
    """Of `total` questions the last half goes wrong every second time; the zero point answers half of them."""
    curve = tuple(Point(-n / 10, n, max(0, n - total // 2) // 2) for n in range(1, total + 1))
    at_zero = curve[total // 2 - 1]
    return Calibration(at_zero.threshold, 1.0, at_zero, curve, total, 0, 5 * total, total, "set", 0.0, 1)


def drawn(title: str = "A <title> & more", max_wrong: float | None = None) -> ElementTree.Element:
    """The picture, read back as XML."""
    made = calibration()
    return ElementTree.fromstring(svg(Picture.of(made, zero_of(made, max_wrong), title, max_wrong)))


def test_a_picture_has_titles_axes_and_the_point_in_force() -> None:
    """Well-formed whatever the names, both axes named, ticks from 0 to 100 %, and what happens at the zero point."""
    root = drawn()
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert texts[0] == "A <title> & more"
    assert "50 of 100 answered (50%), 0.0% of those wrong" in str(texts[1])
    assert {"answered, of all questions", "wrong among answered", "0%", "100%"} <= set(texts)
    (circle,) = root.iter(f"{SVG}circle")
    assert float(circle.attrib["cx"]) == pytest.approx((LEFT + WIDTH - RIGHT) / 2)


def test_a_long_name_is_cut_to_fit() -> None:
    """A model's folder can be longer than the picture is wide."""
    title = next(drawn("a/very/long/path" * 20).iter(f"{SVG}text")).text
    assert title is not None
    assert len(title) < 70
    assert title.endswith("…")


def test_the_largest_share_of_wrong_is_a_line() -> None:
    """It is drawn and named where it is set, and only there."""
    assert not any("at most" in str(element.text) for element in drawn().iter(f"{SVG}text"))
    asked = drawn(max_wrong=0.125)
    assert any(element.text == "at most 12.5%" for element in asked.iter(f"{SVG}text"))
    assert any("stroke-dasharray" in element.attrib for element in asked.iter(f"{SVG}line"))


def test_every_point_is_within_the_picture() -> None:
    """The line never leaves its frame, whose height goes by the largest risk."""
    line = next(element for element in drawn().iter(f"{SVG}path") if element.attrib.get("stroke-linejoin"))
    numbers = [float(number) for number in re.findall(r"[\d.]+", line.attrib["d"])]
    assert all(LEFT <= x <= WIDTH - RIGHT for x in numbers[::2])
    assert all(y >= TOP for y in numbers[1::2])
    assert len(numbers) == 2 * 91, "the first nine answers are left out: their risk is chance"


def test_ticks_are_round_and_few() -> None:
    """From zero to the top, whatever it is."""
    for tenths in range(1, 11):
        marks = ticks(tenths / 10)
        assert (marks[0], marks[-1]) == (0, tenths / 10)
        assert 4 <= len(marks) <= 11


def test_a_file_is_svg_or_png(tmp_path: Path) -> None:
    """By its ending; another one is refused before anything is asked."""
    made = calibration()
    for name, begins in (("c.svg", b"<svg "), ("c.PNG", b"\x89PNG")):
        save_curve(tmp_path / name, made, zero_of(made, 0.2), title="t", max_wrong=0.2)
        assert (tmp_path / name).read_bytes().startswith(begins)
    with pytest.raises(ConfigError, match=r"\.svg or \.png"):
        check_picture(tmp_path / "curve.jpg")


def test_a_png_without_matplotlib_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the way that needs none."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "leadline.evaluation.curve.find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    with pytest.raises(MissingExtra, match="matplotlib") as caught:
        check_picture(tmp_path / "curve.png")
    assert ".svg" in caught.value.hint
    check_picture(tmp_path / "curve.svg")
