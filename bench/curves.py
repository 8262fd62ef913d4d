"""Draws the curves of results.json as SVG into docs/assets: `python bench/curves.py`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from measure import RESULTS

FOLDER = Path(__file__).parent.parent / "docs" / "assets"
WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 190, 44, 46
# Colours that are told apart by those who see few, on white and on black.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#888888")
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.t{font-size:15px;font-weight:600}"
    ".g{stroke:#d0d7de;stroke-width:1}.l{fill:none;stroke-width:2.5}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.g{stroke:#3d444d}}"
)


class Line(NamedTuple):
    """A named curve; its points are sizes and values."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


def page(title: str, parts: Sequence[str], height: int = HEIGHT) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    name = f"<title>{escape(title)}</title><style>{STYLE}</style>"
    shown = f'<text class="t" x="{LEFT}" y="24">{escape(title)}</text>'
    return "\n".join([head + name, shown, *parts, "</svg>\n"])


def short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"


def draw_lines(title: str, unit: str, lines: Sequence[Line]) -> str:
    """Both axes by powers of ten."""
    spots = [point for line in lines for point in line.points]
    low_x, high_x = (math.log10(f(x for x, _ in spots)) for f in (min, max))
    low_y = math.floor(math.log10(min(y for _, y in spots)))
    high_y = math.ceil(math.log10(max(y for _, y in spots)))
    span_x, span_y = max(high_x - low_x, 0.1), max(high_y - low_y, 1)

    def x_of(size: float) -> float:
        return LEFT + (math.log10(size) - low_x) / span_x * (WIDTH - LEFT - RIGHT)

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(value) - low_y) / span_y * (HEIGHT - TOP - BOTTOM)

    parts = []
    for power in range(low_y, high_y + 1):
        for step in (1, 3) if power < high_y else (1,):
            y = y_of(step * 10.0**power)
            parts.append(f'<path class="g" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            label = short(step * 10.0**power)
            parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for size in sorted({x for x, _ in spots}):
        label = f'<text x="{x_of(size):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">'
        parts.append(f"{label}{short(size)}</text>")
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 8}">memories; {escape(unit)}</text>')
    placed: list[float] = []
    order = sorted(range(len(lines)), key=lambda place: y_of(lines[place].points[-1][1]))
    for place in order:
        line, colour = lines[place], COLOURS[place % len(COLOURS)]
        way = " ".join(
            f"{'M' if not number else 'L'}{x_of(x):.1f} {y_of(y):.1f}"
            for number, (x, y) in enumerate(line.points)
        )
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        parts.append(f'<path class="l" stroke="{colour}"{dash} d="{way}"/>')
        y = y_of(line.points[-1][1]) + 4
        y = max(y, placed[-1] + 16) if placed else y
        placed.append(y)
        last = f'<text x="{WIDTH - RIGHT + 8}" y="{y:.1f}" style="fill:{colour}">'
        parts.append(f"{last}{escape(line.name)} {line.points[-1][1]:.3g}</text>")
    return page(title, parts)


def draw_bars(title: str, unit: str, values: Sequence[tuple[str, float]]) -> str:
    """One bar a system, by powers of ten."""
    height = TOP + 30 * len(values) + 40
    left = 190
    low = math.floor(math.log10(min(value for _, value in values)))
    high = math.ceil(math.log10(max(value for _, value in values)))
    parts = []
    for place, (name, value) in enumerate(sorted(values, key=lambda pair: pair[1])):
        y = TOP + 30 * place
        wide = (math.log10(value) - low) / max(1, high - low) * (WIDTH - left - 90)
        colour = COLOURS[0] if name == "Bethink" else COLOURS[6]
        parts += [
            f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{left}" y="{y}" width="{max(wide, 2):.1f}" height="20" fill="{colour}"/>',
            f'<text x="{left + max(wide, 2) + 8:.1f}" y="{y + 15}">{value:.3g}</text>',
        ]
    parts.append(f'<text x="{left}" y="{height - 12}">{escape(unit)}, by powers of ten</text>')
    return page(title, parts, height)


def points(found: dict[str, Any], name: str) -> list[tuple[float, float]]:
    sizes = sorted(found, key=int)
    return [(float(size), found[size][name]) for size in sizes if name in found[size]]


def main() -> None:
    found = json.loads(RESULTS.read_text("utf-8"))
    walk = found["walk"]
    lines = [
        Line("default p50", points(walk, "default")),
        Line("reference p50", points(walk, "reference")),
        Line("default p95", points(walk, "default_p95"), dashed=True),
        Line("without encoder", points(walk, "walk")),
    ]
    title = "A question by the size of the store"
    files = {"speed-recall.svg": draw_lines(title, "CPU milliseconds, warm", lines)}
    if "filters" in found:
        kinds = ("none", "a person named often", "speaker, one of forty", "topic", "one day")
        lines = [Line(kind, points(found["filters"], kind)) for kind in kinds]
        title = "A question within a filter"
        files["speed-filters.svg"] = draw_lines(title, "CPU milliseconds, warm", lines)
    for size, systems in found.get("peers", {}).items():
        title = f"A question among {int(size):,} memories, beside other stores"
        values = [(name, numbers[0]) for name, numbers in systems.items()]
        unit = "CPU milliseconds without the encoder"
        files[f"speed-peers-{short(float(size))}.svg"] = draw_bars(title, unit, values)
    for name, text in files.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
