"""The report as one self-contained HTML page with tables and SVG plots, no scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from bethink.core.json_values import Json
from bethink.eval.metrics import ALL, RESAMPLES
from bethink.eval.tables import ReportTable, headline, report_tables

COLOURS = ("#3b6ea8", "#c8743c", "#4d8f5b", "#9a5aa0", "#a8963b", "#5b8f8f")
_AXIS_COLOUR = "#8a8f98"
_WIDTH = 760
_LABEL_WIDTH = 190
_ROW_HEIGHT = 18
_GROUP_GAP = 8


@dataclass(frozen=True, slots=True)
class Bar:
    """One value, its interval, and the index of its colour."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    colour: int = 0


def bar_chart(title: str, groups: Sequence[tuple[str, Sequence[Bar]]], *, unit: str = "") -> str:
    """Grouped horizontal bars; zero is always on the scale."""
    shown = [bar for _, members in groups for bar in members]
    edges = [edge for bar in shown for edge in (bar.value, bar.low, bar.high) if edge is not None]
    least, most = min([0.0, *edges]), max([0.0, *edges]) or 1.0
    room = _WIDTH - _LABEL_WIDTH - 70
    scale = room / (most - least or 1.0)
    zero = _LABEL_WIDTH - least * scale
    parts: list[str] = []
    top = 26
    for name, members in groups:
        parts.append(
            _text(_LABEL_WIDTH - 8, top + _ROW_HEIGHT * len(members) / 2 + 4, name, anchor="end")
        )
        for bar in members:
            parts += _draw_bar(bar, top, zero, scale, unit)
            top += _ROW_HEIGHT
        top += _GROUP_GAP
    axis = f'<line x1="{zero:.1f}" y1="22" x2="{zero:.1f}" y2="{top}" stroke="{_AXIS_COLOUR}"/>'
    return _svg(title, top + 4, [axis, *parts])


def _draw_bar(bar: Bar, top: float, zero: float, scale: float, unit: str) -> list[str]:
    end = zero + bar.value * scale
    left, width = min(zero, end), abs(end - zero)
    colour = COLOURS[bar.colour % len(COLOURS)]
    label = escape(f"{bar.label}: {bar.value:.3f}{unit}")
    box = f'x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_ROW_HEIGHT - 4}"'
    parts = [f'<rect {box} fill="{colour}"><title>{label}</title></rect>']
    reach = end
    if bar.low is not None and bar.high is not None:
        low, high = zero + bar.low * scale, zero + bar.high * scale
        middle = top + (_ROW_HEIGHT - 4) / 2
        reach = max(end, high)
        parts.append(
            f'<line x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}" '
            'stroke="currentColor" stroke-width="1.5"/>'
        )
    parts.append(
        _text(max(reach, zero) + 6, top + _ROW_HEIGHT - 7, f"{bar.value:.3f}{unit}", size=11)
    )
    return parts


def score_histograms(
    title: str, kinds: Sequence[tuple[str, Sequence[float]]], *, bins: int = 40
) -> str:
    """Histograms of scores, one row per kind, each scaled by itself."""
    everything = [score for _, scores in kinds for score in scores]
    if not everything:
        return ""
    least, most = min(everything), max(everything)
    width = (_WIDTH - _LABEL_WIDTH - 20) / bins
    parts = []
    top = 26
    for place, (name, scores) in enumerate(kinds):
        counts = _histogram(scores, least, most, bins)
        tallest = max(counts) or 1
        parts.append(_text(_LABEL_WIDTH - 8, top + 34, f"{name} ({len(scores):,})", anchor="end"))
        for number, count in enumerate(counts):
            height = 44 * count / tallest
            parts.append(
                f'<rect x="{_LABEL_WIDTH + number * width:.1f}" y="{top + 46 - height:.1f}" '
                f'width="{width - 1:.1f}" height="{height:.1f}" '
                f'fill="{COLOURS[place % len(COLOURS)]}"/>'
            )
        top += 54
    parts.append(_text(_LABEL_WIDTH, top + 8, f"{least:.3f}", size=11))
    parts.append(_text(_WIDTH - 20, top + 8, f"{most:.3f}", anchor="end", size=11))
    return _svg(title, top + 14, parts)


_DIAGRAM_SIZE = 260


def reliability_diagram(name: str, found: Json) -> str:
    """Said against right: a point for each bin; on the diagonal both are equal."""
    left, top, size = _LABEL_WIDTH, 34, _DIAGRAM_SIZE
    frame = f'x="{left}" y="{top}" width="{size}" height="{size}"'
    diagonal = (
        f'<line x1="{left}" y1="{top + size}" x2="{left + size}" y2="{top}" '
        f'stroke="{_AXIS_COLOUR}" stroke-dasharray="4 4"/>'
    )
    parts = [
        f'<rect {frame} fill="none" stroke="{_AXIS_COLOUR}"/>',
        diagonal,
        _text(left - 8, top + 10, "right 1", anchor="end", size=11),
        _text(left - 8, top + size, "0", anchor="end", size=11),
        _text(left, top + size + 14, "said 0", size=11),
        _text(left + size, top + size + 14, "1", anchor="end", size=11),
        _text(left + size + 16, top + 12, f"ECE {found['ece']:.3f}"),
        _text(left + size + 16, top + 30, f"AUC {found['auc']:.3f}" if found["auc"] else ""),
        _text(left + size + 16, top + 48, f"{found['n']:,} answers"),
    ]
    places = [
        (left + size * one["confidence"], top + size * (1 - one["right"]), one)
        for one in found["bins"]
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[0]}"/>')
    for x, y, one in places:
        label = f"said {one['confidence']:.3f}, right {one['right']:.3f}"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[0]}">'
            f"<title>{label}</title></circle>"
        )
    return _svg(f"Reliability of the confidence, {name}", top + size + 20, parts)


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


_PLOTTED_METRICS = ("recall@5", "recall@10", "all@10", "ndcg@10", "mrr")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
  color: #1d2129; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .87rem; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; white-space: nowrap; }
th { border-bottom: 1px solid #b9bec7; font-weight: 600; } .right { text-align: right; }
.scroll { overflow-x: auto; } .note { color: #5c626d; font-size: .85rem; margin: .3rem 0; }
svg { max-width: 48rem; width: 100%; font-family: inherit; fill: currentColor; }
@media (prefers-color-scheme: dark) {
  body { color: #dfe3ea; background: #16181d; } .note { color: #9aa1ad; }
}
"""


def html_page(report: Json) -> str:
    """Return the whole page. Every external text is escaped; there is no script."""
    summary = escape(headline(report))
    titles = [str(one["measured_on"]["title"]) for one in report.get("sets", [report])]
    body = "".join(_page_body(report))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Bethink: {escape(', '.join(titles))}</title>"
        f"<style>{_STYLE}</style></head>"
        f"<body><h1>Recall quality, measured</h1><p>{summary}</p>{body}"
        f'<p class="note">Bethink {escape(report["bethink"])}; intervals are 95 %, from '
        f"{RESAMPLES:,} resamples of the questions.</p></body></html>\n"
    )


def _page_body(report: Json) -> Iterator[str]:
    if "sets" in report:
        yield from _sets_body(report)
        return
    yield _legend(report)
    yield _quality_plot(report)
    yield _category_plot(report)
    yield from _score_plots(report)
    for profile in report["profiles"]:
        if profile["calibration"]:
            yield reliability_diagram(profile["name"], profile["calibration"])
    yield from _ablation_plots(report)
    for sheet in report_tables(report):
        yield _html_table(sheet)


def _sets_body(document: Json) -> Iterator[str]:
    """The page of several sets: the calibration of all and of each, and the tables."""
    for one in document["pooled"]:
        if one["calibration"]:
            yield reliability_diagram(f"all sets, {one['name']}", one["calibration"])
    for sheet in report_tables(document):
        yield _html_table(sheet)
    for report in document["sets"]:
        for profile in report["profiles"]:
            if profile["calibration"]:
                name = f"{report['measured_on']['label']}, {profile['name']}"
                yield reliability_diagram(name, profile["calibration"])


def _legend(report: Json) -> str:
    marks = (
        f'<span style="color:{COLOURS[place % len(COLOURS)]}">■</span> {escape(profile["name"])}'
        for place, profile in enumerate(report["profiles"])
    )
    return f"<p>{' &nbsp; '.join(marks)}</p>"


def _quality_plot(report: Json) -> str:
    groups = [(name, _metric_bars(report, ALL, name)) for name in _PLOTTED_METRICS]
    return bar_chart(f"Quality on all {report['measured_on']['questions']:,} questions", groups)


def _category_plot(report: Json) -> str:
    views = [view for view in report["profiles"][0]["quality"] if view != ALL]
    groups = [(view, _metric_bars(report, view, "recall@10")) for view in views]
    return bar_chart("recall@10 by question category", groups) if groups else ""


def _score_plots(report: Json) -> Iterator[str]:
    for profile in report["profiles"]:
        account = profile["abstention"]
        for own, others, title in (
            ("own_scores", "scores", "Best score before the gate"),
            ("own_confidences", "confidences", "Confidence of the answer"),
        ):
            kinds = [("true hits", account[own])]
            kinds += [(kind["kind"], kind[others]) for kind in account["kinds"]]
            if len(kinds) > 1 and any(scores for _, scores in kinds):
                yield score_histograms(f"{title}, {profile['name']}", kinds)


def _ablation_plots(report: Json) -> Iterator[str]:
    names = dict.fromkeys(entry["profile"] for entry in report["ablations"])
    for name in names:
        groups = []
        for entry in report["ablations"]:
            change = entry["changes"].get("recall@10")
            if entry["profile"] == name and change:
                bar = Bar(entry["part"], change["value"], change["low"], change["high"])
                groups.append((f"without {entry['part']}", [bar]))
        yield bar_chart(f"Change of recall@10, {name}", groups)


def _metric_bars(report: Json, view: str, name: str) -> list[Bar]:
    figures = [(one["name"], one["quality"][view][name]) for one in report["profiles"]]
    return [
        Bar(profile, figure["value"], figure["low"], figure["high"], colour)
        for colour, (profile, figure) in enumerate(figures)
    ]


def _html_table(sheet: ReportTable) -> str:
    sides = ["right" if head.startswith(">") else "left" for head in sheet.heads]
    heads = "".join(
        f'<th class="{side}">{escape(head.removeprefix(">"))}</th>'
        for side, head in zip(sides, sheet.heads, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td class="{side}">{escape(cell)}</td>' for side, cell in zip(sides, row, strict=True)
        )
        + "</tr>"
        for row in sheet.rows
    )
    note = f'<p class="note">{escape(sheet.note)}</p>' if sheet.note else ""
    return (
        f'<h2>{escape(sheet.title)}</h2><div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{note}"
    )
