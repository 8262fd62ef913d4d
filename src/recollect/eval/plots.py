"""Plots as SVG, drawn without a library: bars with intervals, and two clouds of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#3b6ea8", "#c8743c", "#4d8f5b", "#9a5aa0", "#a8963b", "#5b8f8f")
_GREY = "#8a8f98"
_WIDTH = 760
_LABEL = 190
_ROW = 18
_GAP = 8


@dataclass(frozen=True, slots=True)
class Bar:
    """One value, the interval around it, and which of the legend's colours it has."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    colour: int = 0


def bars(title: str, groups: Sequence[tuple[str, Sequence[Bar]]], *, unit: str = "") -> str:
    """Horizontal bars, grouped; zero is always on the scale."""
    shown = [bar for _, members in groups for bar in members]
    edges = [edge for bar in shown for edge in (bar.value, bar.low, bar.high) if edge is not None]
    least, most = min([0.0, *edges]), max([0.0, *edges]) or 1.0
    room = _WIDTH - _LABEL - 70
    scale = room / (most - least or 1.0)
    zero = _LABEL - least * scale
    parts: list[str] = []
    top = 26
    for name, members in groups:
        parts.append(_text(_LABEL - 8, top + _ROW * len(members) / 2 + 4, name, anchor="end"))
        for bar in members:
            parts += _bar(bar, top, zero, scale, unit)
            top += _ROW
        top += _GAP
    axis = f'<line x1="{zero:.1f}" y1="22" x2="{zero:.1f}" y2="{top}" stroke="{_GREY}"/>'
    return _svg(title, top + 4, [axis, *parts])


def _bar(bar: Bar, top: float, zero: float, scale: float, unit: str) -> list[str]:
    end = zero + bar.value * scale
    left, width = min(zero, end), abs(end - zero)
    colour = COLOURS[bar.colour % len(COLOURS)]
    told = escape(f"{bar.label}: {bar.value:.3f}{unit}")
    box = f'x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_ROW - 4}"'
    parts = [f'<rect {box} fill="{colour}"><title>{told}</title></rect>']
    reach = end
    if bar.low is not None and bar.high is not None:
        low, high = zero + bar.low * scale, zero + bar.high * scale
        middle = top + (_ROW - 4) / 2
        reach = max(end, high)
        parts.append(
            f'<line x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}" '
            'stroke="currentColor" stroke-width="1.5"/>'
        )
    parts.append(_text(max(reach, zero) + 6, top + _ROW - 7, f"{bar.value:.3f}{unit}", size=11))
    return parts


def clouds(title: str, kinds: Sequence[tuple[str, Sequence[float]]], *, bins: int = 40) -> str:
    """How often which score occurs, a row a kind; each row is scaled by itself."""
    everything = [score for _, scores in kinds for score in scores]
    if not everything:
        return ""
    least, most = min(everything), max(everything)
    width = (_WIDTH - _LABEL - 20) / bins
    parts = []
    top = 26
    for place, (name, scores) in enumerate(kinds):
        counts = _histogram(scores, least, most, bins)
        tallest = max(counts) or 1
        parts.append(_text(_LABEL - 8, top + 34, f"{name} ({len(scores):,})", anchor="end"))
        for number, count in enumerate(counts):
            height = 44 * count / tallest
            parts.append(
                f'<rect x="{_LABEL + number * width:.1f}" y="{top + 46 - height:.1f}" '
                f'width="{width - 1:.1f}" height="{height:.1f}" '
                f'fill="{COLOURS[place % len(COLOURS)]}"/>'
            )
        top += 54
    parts.append(_text(_LABEL, top + 8, f"{least:.3f}", size=11))
    parts.append(_text(_WIDTH - 20, top + 8, f"{most:.3f}", anchor="end", size=11))
    return _svg(title, top + 14, parts)


def _histogram(scores: Sequence[float], least: float, most: float, bins: int) -> list[int]:
    counts = [0] * bins
    span = (most - least) or 1.0
    for score in scores:
        counts[min(bins - 1, int((score - least) / span * bins))] += 1
    return counts


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" '
        f'role="img" aria-label="{escape(title)}">'
    )
    return head + _text(0, 14, title, size=13) + "".join(parts) + "</svg>"
