"""The report as one HTML page: tables and plots, nothing to load, nothing to run."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from recollect.eval.looking import CERTAIN
from recollect.eval.plots import COLOURS, Bar, bars, clouds
from recollect.eval.scoring import ALL
from recollect.eval.sheets import Sheet, headline, sheets

Json = dict[str, Any]

_PLOTTED = ("recall@5", "recall@10", "all@10", "ndcg@10", "mrr")
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


def page(report: Json) -> str:
    """The whole page. Every text from outside is escaped; there is no script."""
    told = escape(headline(report))
    body = "".join(_body(report))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Recollect: {escape(report['measured_on']['title'])}</title>"
        f"<style>{_STYLE}</style></head>"
        f"<body><h1>Recall quality, measured</h1><p>{told}</p>{body}"
        f'<p class="note">Recollect {escape(report["recollect"])}; intervals are 95 %, from '
        f"{report['measured_on']['resamples']:,} resamples of the questions.</p></body></html>\n"
    )


def _body(report: Json) -> Iterator[str]:
    yield _legend(report)
    yield _quality_plot(report)
    yield _category_plot(report)
    yield from _score_plots(report)
    yield from _ablation_plots(report)
    for sheet in sheets(report):
        yield _table(sheet)


def _legend(report: Json) -> str:
    marks = (
        f'<span style="color:{COLOURS[place % len(COLOURS)]}">■</span> {escape(profile["name"])}'
        for place, profile in enumerate(report["profiles"])
    )
    return f"<p>{' &nbsp; '.join(marks)}</p>"


def _quality_plot(report: Json) -> str:
    groups = [
        (name, [_bar(profile, ALL, name, place) for place, profile in _numbered(report)])
        for name in _PLOTTED
    ]
    return bars(f"Quality on all {report['measured_on']['questions']:,} questions", groups)


def _category_plot(report: Json) -> str:
    views = [view for view in report["profiles"][0]["quality"] if view != ALL]
    if not views:
        return ""
    groups = [
        (view, [_bar(profile, view, "recall@10", place) for place, profile in _numbered(report)])
        for view in views
    ]
    return bars("recall@10 by kind of question", groups)


def _score_plots(report: Json) -> Iterator[str]:
    for profile in report["profiles"]:
        account = profile["abstention"]
        for own, others, told in (
            ("own_scores", "scores", "Best score before the gate"),
            ("own_sureness", "sureness", "Confidence of the gate, where it weighed"),
        ):
            kinds = [("true hits", account[own])]
            kinds += [(kind["kind"], kind[others]) for kind in account["kinds"]]
            seen = [(name, [one for one in some if abs(one) < CERTAIN]) for name, some in kinds]
            if len(seen) > 1 and any(some for _, some in seen):
                yield clouds(f"{told}, {profile['name']}", seen)


def _ablation_plots(report: Json) -> Iterator[str]:
    names = dict.fromkeys(entry["profile"] for entry in report["ablations"])
    for name in names:
        groups = []
        for entry in report["ablations"]:
            change = entry["changes"].get("recall@10")
            if entry["profile"] == name and change:
                bar = Bar(entry["part"], change["value"], change["low"], change["high"])
                groups.append((f"without {entry['part']}", [bar]))
        yield bars(f"Change of recall@10, {name}", groups)


def _numbered(report: Json) -> Iterator[tuple[int, Json]]:
    return enumerate(report["profiles"])


def _bar(profile: Json, view: str, name: str, colour: int) -> Bar:
    figure = profile["quality"][view][name]
    return Bar(profile["name"], figure["value"], figure["low"], figure["high"], colour)


def _table(sheet: Sheet) -> str:
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
