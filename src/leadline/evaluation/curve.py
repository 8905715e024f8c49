"""The risk–coverage curve of a calibration as a picture: SVG written out by hand, PNG where matplotlib is installed.

Knows how the curve is drawn. Doesn't know how it comes about nor which point is in force: that is given.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import escape

from leadline.calibration import FEWEST_ANSWERED, Calibration, Zero
from leadline.errors import ConfigError, MissingExtra

WIDTH, HEIGHT = 720, 460
LEFT, RIGHT, TOP, BOTTOM = 76, 28, 64, 64  # margins
LINE, BAND, MARK, ASKED, GRID, TEXT = "#1f5fa8", "#cfdff1", "#b3261e", "#6b6b6b", "#e4e4e4", "#222222"
TITLE_CHARS = 62  # what fits
RISK_LABEL = "wrong among answered"
COVERAGE_LABEL = "answered, of all questions"


def save_curve(path: Path, calibration: Calibration, zero: Zero, *, title: str, max_wrong: float | None) -> None:
    """Draws the curve, the point in force and the largest share of wrong into a file. Raises as `check_picture`."""
    check_picture(path)
    write = _write_png if path.suffix.lower() == ".png" else _write_svg
    write(path, Picture.of(calibration, zero, title, max_wrong))


def check_picture(path: Path) -> None:
    """Raises ConfigError for a file that is neither .svg nor .png, MissingExtra for .png without matplotlib."""
    if path.suffix.lower() not in (".svg", ".png"):
        raise ConfigError(f"{path.name}: a picture is .svg or .png.", hint="Name the file so.")
    if path.suffix.lower() == ".png" and find_spec("matplotlib") is None:
        raise MissingExtra(
            "A .png picture needs matplotlib.", hint="pip install 'leadline[notebooks]', or name a .svg file."
        )


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn, as shares: `line` (coverage, risk, low, high) from the left, and the height of the picture."""

    line: tuple[tuple[float, float, float, float], ...]
    mark: tuple[float, float] | None
    top: float
    max_wrong: float | None
    title: str
    subtitle: str

    @classmethod
    def of(cls, calibration: Calibration, zero: Zero, title: str, max_wrong: float | None) -> "Picture":
        """The first few answers are left out, where there are more: their risk is chance."""
        total = calibration.questions
        sure = [point for point in calibration.curve if point.answered >= FEWEST_ANSWERED] or calibration.curve
        line = tuple((point.answered / total, point.risk, *point.interval) for point in sure)
        mark = (zero.point.answered / total, zero.point.risk) if zero.point and zero.point.answered else None
        highest = max([high for _, _, _, high in line[len(line) // 4 :]] + [risk for _, risk, _, _ in line])
        top = min(1.0, math.ceil(10 * max(highest, max_wrong or 0.0, mark[1] if mark else 0.0)) / 10)
        shown = title if len(title) <= TITLE_CHARS else f"{title[: TITLE_CHARS - 1]}…"
        return cls(line, mark, top, max_wrong, shown, point_in_words(zero, total))


def point_in_words(zero: Zero, total: int) -> str:
    """What the point in force does to the questions, as a sentence."""
    if zero.point is None or not zero.point.answered:
        return f"Zero point {zero.value:+.2f}: nothing is answered"
    low, high = zero.point.interval
    return (
        f"Zero point {zero.value:+.2f}: {zero.point.answered} of {total} answered ({zero.point.answered / total:.0%}), "
        f"{zero.point.risk:.1%} of those wrong (95%: {low:.1%} to {high:.1%})"
    )


def svg(picture: Picture) -> str:
    """The picture as an SVG document."""
    body = "\n".join([*_frame(picture), *_curve(picture), *_marks(picture)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="system-ui, Helvetica, Arial, sans-serif" font-size="13" fill="{TEXT}" role="img">\n'
        f"<title>{escape(picture.title)}. {escape(picture.subtitle)}.</title>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _frame(picture: Picture) -> Iterator[str]:
    """Titles, grid, ticks and axes."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    yield f'<text x="{LEFT}" y="24" font-size="16" font-weight="600">{escape(picture.title)}</text>'
    yield f'<text x="{LEFT}" y="45" fill="{ASKED}">{escape(picture.subtitle)}</text>'
    for share in ticks(1.0):
        x = _x(share)
        yield f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="{GRID}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{share:.0%}</text>'
    for share in ticks(picture.top):
        y = _y(share, picture.top)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{GRID}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4.5:.1f}" text-anchor="end">{share:.0%}</text>'
    yield f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="{TEXT}"/>'
    yield f'<text x="{(LEFT + right) / 2:.1f}" y="{HEIGHT - 18}" text-anchor="middle">{COVERAGE_LABEL}</text>'
    middle = (TOP + bottom) / 2
    turned = f'transform="rotate(-90 22 {middle:.1f})"'
    yield f'<text x="22" y="{middle:.1f}" text-anchor="middle" {turned}>{RISK_LABEL}</text>'


def _curve(picture: Picture) -> Iterator[str]:
    """The 95 % band and the line, cut off at the top of the picture."""
    top = picture.top
    area = f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - RIGHT - LEFT}" height="{HEIGHT - BOTTOM - TOP}"/>'
    yield f'<clipPath id="area">{area}</clipPath>'
    above = [(coverage, high) for coverage, _, _, high in picture.line]
    below = [(coverage, low) for coverage, _, low, _ in reversed(picture.line)]
    yield f'<path d="{_path([*above, *below], top)}Z" fill="{BAND}" clip-path="url(#area)"/>'
    line = _path([(coverage, risk) for coverage, risk, _, _ in picture.line], top)
    yield f'<path d="{line}" fill="none" stroke="{LINE}" stroke-width="2" stroke-linejoin="round"/>'


def _marks(picture: Picture) -> Iterator[str]:
    """The largest share of wrong and the point in force."""
    right = WIDTH - RIGHT
    if picture.max_wrong is not None:
        y = _y(picture.max_wrong, picture.top)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{ASKED}" stroke-dasharray="6 4"/>'
        label = f"at most {100 * picture.max_wrong:.3g}%"
        yield f'<text x="{right - 4}" y="{y - 6:.1f}" text-anchor="end" fill="{ASKED}">{label}</text>'
    if picture.mark:
        x, y = _x(picture.mark[0]), _y(picture.mark[1], picture.top)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="{MARK}" stroke="#ffffff" stroke-width="1.5"/>'


def ticks(top: float) -> list[float]:
    """Four to ten round shares from 0 to `top`."""
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2) if top / step <= 10.001)
    return [round(step * count, 4) for count in range(int(top / step + 1e-9) + 1)]


def _path(points: Sequence[tuple[float, float]], top: float) -> str:
    return "".join(f"{'L' if place else 'M'}{_x(x):.1f} {_y(y, top):.1f}" for place, (x, y) in enumerate(points))


def _x(coverage: float) -> float:
    return LEFT + coverage * (WIDTH - RIGHT - LEFT)


def _y(risk: float, top: float) -> float:
    return HEIGHT - BOTTOM - risk / top * (HEIGHT - BOTTOM - TOP)


def _write_svg(path: Path, picture: Picture) -> None:
    path.write_text(svg(picture), encoding="utf-8")


def _write_png(path: Path, picture: Picture) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), layout="constrained")
    axes = figure.add_subplot()
    coverage, risk, low, high = zip(*picture.line, strict=True)
    axes.fill_between(coverage, low, high, color=BAND, linewidth=0)
    axes.plot(coverage, risk, color=LINE, linewidth=2)
    if picture.max_wrong is not None:
        axes.axhline(picture.max_wrong, color=ASKED, linestyle="--", linewidth=1)
    if picture.mark:
        axes.plot(*picture.mark, "o", color=MARK)
    axes.set(xlim=(0, 1), ylim=(0, picture.top), xlabel=COVERAGE_LABEL, ylabel=RISK_LABEL)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.grid(color=GRID)
    axes.set_axisbelow(True)
    figure.suptitle(picture.title, fontsize=11, fontweight="bold")
    axes.set_title(picture.subtitle, fontsize=8)
    figure.savefig(path, dpi=150)
