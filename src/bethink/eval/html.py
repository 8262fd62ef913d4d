"""The report as one self-contained HTML page with tables and SVG plots, no scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.eval.metrics import ALL, RESAMPLES
from bethink.eval.tables import ReportTable, headline, report_tables

COLOURS = ("#3b6ea8", "#c8743c", "#4d8f5b", "#9a5aa0", "#a8963b", "#5b8f8f")
_AXIS_COLOUR = "#8a8f98"
_WIDTH = 760
_LABEL_WIDTH = 190
_ROW_HEIGHT = 18
_GROUP_GAP = 8
_BINS = 40  # of a histogram
_DIAGRAM_SIZE = 260


class Bar(NamedTuple):
    """One value, its interval, and the index of its colour."""

    label: str
    value: float
    low: float
    high: float
    colour: int = 0


def bar_chart(title: str, groups: Sequence[tuple[str, Sequence[Bar]]]) -> str:
    """Grouped horizontal bars; zero is always on the scale."""
    edges = [edge for _, members in groups for bar in members for edge in bar[1:4]]
    least, most = min([0.0, *edges]), max([0.0, *edges]) or 1.0
    scale = (_WIDTH - _LABEL_WIDTH - 70) / (most - least or 1.0)
    zero = _LABEL_WIDTH - least * scale
    parts: list[str] = []
    top = 26
    for name, members in groups:
        middle = top + _ROW_HEIGHT * len(members) / 2 + 4
        parts.append(_text(_LABEL_WIDTH - 8, middle, name, anchor="end"))
        for bar in members:
            parts += _draw_bar(bar, top, zero, scale)
            top += _ROW_HEIGHT
        top += _GROUP_GAP
    axis = _shape("line", x1=zero, y1=22, x2=zero, y2=top, stroke=_AXIS_COLOUR)
    return _svg(title, top + 4, [axis, *parts])


def _draw_bar(bar: Bar, top: float, zero: float, scale: float) -> list[str]:
    end, low, high = (zero + edge * scale for edge in (bar.value, bar.low, bar.high))
    height, width = _ROW_HEIGHT - 4, abs(end - zero)
    middle, colour = top + height / 2, COLOURS[bar.colour % len(COLOURS)]
    told = _shape("title", escape(f"{bar.label}: {bar.value:.3f}"))
    interval = {"x1": low, "y1": middle, "x2": high, "y2": middle, "stroke": "currentColor"}
    return [
        _shape("rect", told, x=min(zero, end), y=top, width=width, height=height, fill=colour),
        _shape("line", **interval, stroke_width=1.5),
        _text(max(end, high, zero) + 6, top + _ROW_HEIGHT - 7, f"{bar.value:.3f}", size=11),
    ]


def score_histograms(title: str, kinds: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Histograms of scores, one row per kind, each scaled by itself."""
    everything = [score for _, scores in kinds for score in scores]
    if not everything:
        return ""
    least, most = min(everything), max(everything)
    step, width = (_WIDTH - _LABEL_WIDTH - 20) / _BINS, (most - least) or 1.0
    parts = []
    top = 26
    for place, (name, scores) in enumerate(kinds):
        bins = Counter(min(_BINS - 1, int((one - least) / width * _BINS)) for one in scores)
        tallest, fill = max(bins.values(), default=1), COLOURS[place % len(COLOURS)]
        parts.append(_text(_LABEL_WIDTH - 8, top + 34, f"{name} ({len(scores):,})", anchor="end"))
        for number, count in bins.items():
            height, x = 44 * count / tallest, _LABEL_WIDTH + number * step
            size = {"width": step - 1, "height": height, "fill": fill}
            parts.append(_shape("rect", x=x, y=top + 46 - height, **size))
        top += 54
    parts.append(_text(_LABEL_WIDTH, top + 8, f"{least:.3f}", size=11))
    parts.append(_text(_WIDTH - 20, top + 8, f"{most:.3f}", anchor="end", size=11))
    return _svg(title, top + 14, parts)


def reliability_diagram(name: str, found: Json) -> str:
    """Said against right: a point for each bin; on the diagonal both are equal."""
    left, top, size = _LABEL_WIDTH, 34, _DIAGRAM_SIZE
    right, bottom, axis = left + size, top + size, {"stroke": _AXIS_COLOUR}
    parts = [
        _shape("rect", x=left, y=top, width=size, height=size, fill="none", **axis),
        _shape("line", x1=left, y1=bottom, x2=right, y2=top, **axis, stroke_dasharray="4 4"),
        _text(left - 8, top + 10, "right 1", anchor="end", size=11),
        _text(left - 8, bottom, "0", anchor="end", size=11),
        _text(left, bottom + 14, "said 0", size=11),
        _text(right, bottom + 14, "1", anchor="end", size=11),
        _text(right + 16, top + 12, f"ECE {found['ece']:.3f}"),
        _text(right + 16, top + 30, f"AUC {found['auc']:.3f}" if found["auc"] else ""),
        _text(right + 16, top + 48, f"{found['n']:,} answers"),
    ]
    places = [
        (left + size * one["confidence"], bottom - size * one["right"]) for one in found["bins"]
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(_shape("polyline", points=line, fill="none", stroke=COLOURS[0]))
    for (x, y), one in zip(places, found["bins"], strict=True):
        told = _shape("title", f"said {one['confidence']:.3f}, right {one['right']:.3f}")
        parts.append(_shape("circle", told, cx=x, cy=y, r=4, fill=COLOURS[0]))
    return _svg(f"Reliability of the confidence, {name}", bottom + 20, parts)


def _shape(tag: str, inner: str = "", /, **given: object) -> str:
    """An element of SVG with what is inside it; an underscore in a name is a dash."""
    values = {name: f"{one:.1f}" if isinstance(one, float) else one for name, one in given.items()}
    written = "".join(f' {name.replace("_", "-")}="{one}"' for name, one in values.items())
    return f"<{tag}{written}>{inner}</{tag}>"


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return _shape("text", escape(text), x=x, y=y, font_size=size, text_anchor=anchor)


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    drawn = _text(0, 14, title, size=13) + "".join(parts)
    view = f"0 0 {_WIDTH} {height:.0f}"
    about = {"role": "img", "aria_label": escape(title)}
    return _shape("svg", drawn, xmlns="http://www.w3.org/2000/svg", viewBox=view, **about)


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
