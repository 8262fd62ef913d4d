"""The report as tables, for a terminal, a pipe or a page.

A figure is never cut: its last digit may be the one that matters.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bethink.cli.output import Column, Printer, bold, dim, display_width, print_table
from bethink.core import plural
from bethink.eval.baselines import BM25, COSINE, MEASURED_AGAINST, RRF
from bethink.eval.metrics import ACCEPTED_LOSS, ALL

if TYPE_CHECKING:
    from rich.table import Table


Json = dict[str, Any]

_METRIC_TITLES = {"ndcg@10": "nDCG@10", "mrr": "MRR", "precision@5": "P@5", "precision@10": "P@10"}
_MAIN_METRICS = (
    "recall@5",
    "recall@10",
    "hit@5",
    "all@5",
    "all@10",
    "ndcg@10",
    "mrr",
    "precision@5",
)
_WITH_INTERVAL = ("recall@10", "ndcg@10")
MAX_UNRESOLVED_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table: title, headings (``>`` aligns a column right), rows and a note."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def report_tables(report: Json) -> Iterator[ReportTable]:
    """Yield every table that the report, or the document of several sets, has data for."""
    if "sets" in report:
        yield from _tables_of_sets(report)
        return
    profiles = report["profiles"]
    yield _quality_table(profiles, how_asked(report))
    yield from _comparison_table(report["comparisons"])
    yield from _baseline_table([report])
    yield _sets_table([report])
    yield from _abstention_table([report])
    yield from _calibration_tables([report], [])
    yield _speed_table(report, profiles)
    for profile in profiles:
        yield _retriever_table(profile)
        yield _stage_table(profile)
    yield from _ablation_table(report["ablations"])
    if "against" in report:
        yield _regression_table(report["against"])


def _tables_of_sets(document: Json) -> Iterator[ReportTable]:
    """Tables with a row for every set and type."""
    reports = document["sets"]
    yield _sets_table(reports)
    yield from _baseline_table(reports)
    yield from _abstention_table(reports)
    yield from _calibration_tables(reports, document["pooled"])
    if "against" in document:
        yield _regression_table(document["against"])


def how_asked(report: Json) -> str:
    """Whether the questions were asked as a default caller asks them, and how else."""
    on = report["measured_on"]
    own = [profile["limits"] for profile in report["profiles"]]
    limits = list(
        dict.fromkeys(
            f"k = {on['k'] or limit['k']}, {on['max_tokens'] or limit['max_tokens']:,} tokens"
            for limit in own
        )
    )
    if on["as_shipped"]:
        return f"as a default caller gets it ({' or '.join(limits)})"
    ungated = ", before the gate" if on["ungated"] else ""
    return f"not what a default caller gets: {' or '.join(limits)}{ungated}"


def headline(report: Json) -> str:
    """Summary of the data set and the setup, in one line."""
    if "sets" in report:
        first = report["sets"][0]
        on = first["measured_on"]
        return (
            f"{plural(len(report['sets']), 'data set')}, embedder {on['embedder']}, "
            f"seed {on['seed']}"
        )
    on = report["measured_on"]
    skipped = f" ({on['skipped']:,} skipped)" if on["skipped"] else ""
    cases = f"{on['cases']:,} spaces, " if on["cases"] > 1 else ""
    return (
        f"{on['title']}: {cases}{plural(on['memories'], 'memory')}, "
        f"{plural(on['questions'], 'question')}{skipped}, embedder {on['embedder']}, "
        f"seed {on['seed']}"
    )


def unresolved_lines(report: Json) -> Iterator[str]:
    """Lines for references that match no memory, so that they can be fixed.

    Also for texts that were stored in parts, by name.
    """
    if "sets" in report:
        for one in report["sets"]:
            yield from unresolved_lines(one)
        return
    split = report["measured_on"]["split"]
    if split:
        shown = ", ".join(split[:MAX_UNRESOLVED_SHOWN])
        more = len(split) - MAX_UNRESOLVED_SHOWN
        yield f"stored in parts, because it is over the limit of a memory: {shown}" + (
            f" and {more:,} more" if more > 0 else ""
        )
    unknown = report["measured_on"]["unknown"]
    for entry in unknown[:MAX_UNRESOLVED_SHOWN]:
        yield f"skipped, because no memory has this id or text: {entry}"
    if len(unknown) > MAX_UNRESOLVED_SHOWN:
        yield f"and {len(unknown) - MAX_UNRESOLVED_SHOWN:,} more; --json lists all"


def format_number(value: float | None, digits: int = 3) -> str:
    """Format a number; a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def format_signed(value: float | None, digits: int = 3) -> str:
    """Format a difference with its sign."""
    return "–" if value is None else f"{value:+.{digits}f}"


def format_percent(value: float | None) -> str:
    """Format a share as a percentage."""
    return "–" if value is None else f"{value:.1%}"


def _named_profiles(reports: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    """Every profile of every set with the name of its row."""
    several = any(len(report["profiles"]) > 1 for report in reports)
    for report in reports:
        for profile in report["profiles"]:
            if len(reports) == 1:
                yield profile["name"], profile
                continue
            label = report["measured_on"]["label"]
            yield f"{label}, {profile['name']}" if several else label, profile


_SET_METRICS = ("hit@1", "hit@3", "hit@10", "recall@10", "all@5", "all@10", "ndcg@10")


def _sets_table(reports: Sequence[Json]) -> ReportTable:
    rows = [
        (
            name if row["type"] == ALL else "",
            row["type"],
            f"{row['n']:,}",
            *(format_number((row["quality"] or {}).get(metric)) for metric in _SET_METRICS),
            format_number(row["newer_first"]),
            *(format_percent(row[f"{status}_share"]) for status in ("found", "unsure", "silent")),
        )
        for name, profile in _named_profiles(reports)
        for row in profile["types"]
    ]
    heads = (
        "set" if len(reports) > 1 else "profile", "questions", ">n",
        *(f">{_METRIC_TITLES.get(name, name)}" for name in _SET_METRICS),
        ">newer first", ">found", ">unsure", ">silent",
    )  # fmt: skip
    asked = "; ".join(dict.fromkeys(map(how_asked, reports)))
    title = "Quality by set and type" if len(reports) > 1 else "Answers by type"
    return ReportTable(title, heads, tuple(rows), f"measured {asked}")


BEHIND = "behind"
_BASELINE_METRICS = ("recall@10", "ndcg@10")


def _baseline_table(reports: Sequence[Json]) -> Iterator[ReportTable]:
    """Our figure, those of the baselines, our ratio to the better, and a mark."""
    rows = [
        (
            name if row["type"] == ALL else "",
            row["type"],
            f"{row['n']:,}",
            *(cell for metric in _BASELINE_METRICS for cell in _baseline_cells(row, metric)),
            behind_mark(row),
        )
        for name, profile in _named_profiles(reports)
        for row in profile["types"]
        if row["baselines"]
    ]
    if rows:
        columns = (
            f">{head}"
            for metric in _BASELINE_METRICS
            for head in (_METRIC_TITLES.get(metric, metric), BM25, COSINE, RRF, "ratio")
        )
        heads = ("set" if len(reports) > 1 else "profile", "questions", ">n", *columns, "")
        note = (
            "ratio to the better of BM25 and cosine of the same embedder; the baselines return "
            "their first k memories whole, without a token budget, and are never silent"
        )
        yield ReportTable("Against plain baselines", heads, tuple(rows), note)


def _baseline_cells(row: Json, metric: str) -> Iterator[str]:
    yield format_number(row["quality"][metric])
    for method in (BM25, COSINE, RRF):
        yield format_number(row["baselines"].get(method, {}).get(metric))
    best = max(_plain_values(row, metric), default=0.0)
    yield format_number(row["quality"][metric] / best if best else None, 2)


def _plain_values(row: Json, metric: str) -> list[float]:
    return [row["baselines"][name][metric] for name in MEASURED_AGAINST if name in row["baselines"]]


def behind_mark(row: Json) -> str:
    """Name the metrics in which a baseline is ahead; empty where none is."""
    behind = [
        _METRIC_TITLES.get(metric, metric)
        for metric in _BASELINE_METRICS
        if row["quality"][metric] < max(_plain_values(row, metric), default=0.0)
    ]
    return f"{BEHIND}: {', '.join(behind)}" if behind else ""


def _calibration_tables(reports: Sequence[Json], pooled: Sequence[Json]) -> Iterator[ReportTable]:
    """ECE and AUC by set and of all together, and the reliability diagram of the last."""
    named = [(name, profile["calibration"]) for name, profile in _named_profiles(reports)]
    named += [(f"all sets, {one['name']}", one["calibration"]) for one in pooled]
    rated = [(name, found) for name, found in named if found]
    if not rated:
        return
    rows = [
        (
            name,
            f"{found['n']:,}",
            f"{found['answerable']:,}",
            format_number(found["ece"]),
            format_number(found["auc"]),
        )
        for name, found in rated
    ]
    heads = ("set" if pooled else "profile", ">answers", ">answerable", ">ECE", ">AUC")
    note = (
        "ECE: mean distance of the confidence from the share that was right, in ten bins of "
        "equal weight; answerable questions and the others weigh half each; AUC: the former "
        "against the latter"
    )
    yield ReportTable("Calibration", heads, tuple(rows), note)
    name, found = rated[-1]
    yield _reliability_table(name, found)


_DIAGRAM_WIDTH = 40


def _reliability_table(name: str, found: Json) -> ReportTable:
    rows = [
        (
            f"{one['low']:.2f} to {one['high']:.2f}",
            format_percent(one["share"]),
            format_number(one["confidence"]),
            format_number(one["right"]),
            _reliability_line(one["confidence"], one["right"]),
        )
        for one in found["bins"]
    ]
    heads = ("confidence", ">weight", ">said", ">right", "0 to 1")
    note = "#: the share of answers that were right; |: what was said on average"
    return ReportTable(f"Reliability of {name}", heads, tuple(rows), note)


def _reliability_line(said: float, right: float) -> str:
    """A bar of the share that was right, with a mark where the confidence lies."""
    line = [
        "#" if place < round(right * _DIAGRAM_WIDTH) else "." for place in range(_DIAGRAM_WIDTH)
    ]
    line[min(_DIAGRAM_WIDTH - 1, int(said * _DIAGRAM_WIDTH))] = "|"
    return "".join(line)


def _quality_table(profiles: Sequence[Json], asked: str) -> ReportTable:
    rows = [
        (
            profile["name"] if view == ALL else "",
            view,
            f"{next(iter(figures.values()))['n']:,}",
            *(
                _format_estimate(figures[name], interval=name in _WITH_INTERVAL)
                for name in _MAIN_METRICS
            ),
        )
        for profile in profiles
        for view, figures in profile["quality"].items()
        if figures
    ]
    heads = (
        "profile",
        "questions",
        ">n",
        *(f">{_METRIC_TITLES.get(name, name)}" for name in _MAIN_METRICS),
    )
    note = f"measured {asked}; ± is half of the 95 % interval over the n questions"
    return ReportTable("Quality", heads, tuple(rows), note)


def _format_estimate(figure: Json, *, interval: bool) -> str:
    if not interval:
        return format_number(figure["value"])
    return f"{figure['value']:.3f} ±{(figure['high'] - figure['low']) / 2:.3f}"


def _comparison_table(rows: Sequence[Json]) -> Iterator[ReportTable]:
    if rows:
        cells = tuple(
            (f"{row['profile']} – {row['base']}", *_difference_cells(row)) for row in rows
        )
        heads = ("difference", "metric", ">n", ">before", ">after", ">change", "95 %", ">p", "")
        yield ReportTable("Profiles compared, paired by question", heads, cells)


def _difference_cells(row: Json) -> tuple[str, ...]:
    return (
        _METRIC_TITLES.get(str(row["metric"]), str(row["metric"])),
        f"{row['n']:,}",
        format_number(row["before"]),
        format_number(row["after"]),
        format_signed(row["value"]),
        f"{format_signed(row['low'])} to {format_signed(row['high'])}",
        format_number(row["p"]),
        "" if row["significant"] else "may be noise",
    )


def _abstention_table(reports: Sequence[Json]) -> Iterator[ReportTable]:
    rows = [
        (
            "" if place else name,
            kind["kind"],
            f"{kind['n']:,}",
            *(format_percent(kind[f"{status}_share"]) for status in ("found", "unsure", "silent")),
            *(
                "" if place else _format_lost(profile["abstention"], loss)
                for loss in ("silenced", "lost")
            ),
            format_number(kind["auc_score"]),
            format_number(kind["auc_confidence"]),
            format_percent(kind["silent_at_loss"]),
        )
        for name, profile in _named_profiles(reports)
        for place, kind in enumerate(profile["abstention"]["kinds"])
    ]
    if rows:
        heads = (
            "set" if len(reports) > 1 else "profile", "questions", ">n", ">found", ">unsure",
            ">silent", ">true hits silenced", ">true hits lost", ">AUC score", ">AUC confidence",
            f">best at {ACCEPTED_LOSS:.0%} loss",
        )  # fmt: skip
        note = (
            "none of these has an answer in the memory. A true hit is in the first ten before "
            "the gate: silenced where the answer is empty, lost where the hit is not in it. AUC: "
            "how often a true hit's score or confidence lies above these; last: what a "
            "threshold could silence"
        )
        yield ReportTable("Abstention", heads, tuple(rows), note)


def _format_lost(account: Json, name: str) -> str:
    share = format_percent(account[f"{name}_share"])
    return f"{account[name]:,} of {account['true_hits']:,} ({share})"


def _speed_table(report: Json, profiles: Sequence[Json]) -> ReportTable:
    rows = [
        (
            profile["name"],
            f"{profile['speed']['n']:,}",
            format_number(profile["speed"]["p50_ms"], 1),
            format_number(profile["speed"]["p95_ms"], 1),
            format_number(profile["speed"]["cpu_p50_ms"], 1),
            format_number(profile["cost"]["tokens"], 0),
            format_number(profile["cost"]["recall"]),
            format_number(profile["cost"]["recall_per_1000_tokens"]),
        )
        for profile in profiles
    ]
    heads = (
        "profile", ">n", ">p50 ms", ">p95 ms", ">CPU p50 ms", ">tokens an answer",
        ">recall in it", ">recall per 1,000 tokens",
    )  # fmt: skip
    rate = report["measured_on"]["memories_per_second"]
    stored = (
        f"{report['measured_on']['stored']:,} memories stored at {rate:,.0f} a second; "
        if rate
        else "the memories were stored earlier; "
    )
    return ReportTable(
        "Speed and cost",
        heads,
        tuple(rows),
        f"{stored}tokens are those of the answer as it is given",
    )


def _retriever_table(profile: Json) -> ReportTable:
    rows = [
        (
            row["channel"],
            f"{row['n'] - row['skipped'] - row['degraded']:,} of {row['n']:,}",
            format_number(row["returned"], 1),
            format_percent(row["found_share"]),
            f"{row['unique']:,} ({format_percent(row['unique_share'])})",
            f"{row['unique_answered']:,}",
            format_number(row["milliseconds"], 2),
            _retriever_verdict(row),
        )
        for row in profile["channels"]
    ]
    heads = (
        "retriever", ">queried", ">returned",
        ">of the relevant", ">only by it", ">of those in top 10",
        ">ms", "",
    )  # fmt: skip
    return ReportTable(f"Retrievers of {profile['name']}", heads, tuple(rows))


def _retriever_verdict(row: Json) -> str:
    if row["dead"]:
        return "dead"
    return "" if row["unique"] else "nothing alone"


def _stage_table(profile: Json) -> ReportTable:
    rows = [
        (
            row["stage"],
            f"{row['n']:,}",
            format_number(row["left"], 1),
            format_number(row["recall_after"]),
            format_signed(row["recall_after"] - row["recall_before"]) if place else "",
            format_signed(row["rise"], 2) if place else "",
            f"{row['up']:,} / {row['down']:,}" if place else "",
            f"{row['gained']:,} / {row['lost']:,}" if place else "",
            format_number(row["milliseconds"], 2),
        )
        for place, row in enumerate(profile["stages"])
    ]
    heads = (
        "stage", ">n", ">left", ">recall@10 after", ">change", ">mean rise", ">up / down",
        ">in / out",
        ">ms",
    )  # fmt: skip
    note = "rise: ranks that the first relevant hit gained; in / out: relevant hits added, dropped"
    return ReportTable(f"Stages of {profile['name']}", heads, tuple(rows), note)


def _ablation_table(entries: Sequence[Json]) -> Iterator[ReportTable]:
    if not entries:
        return
    rows = []
    for entry in entries:
        silent = [format_percent(kind["silent_share"]) for kind in entry["abstention"]["kinds"]]
        rows.append(
            (
                f"{entry['profile']} without {entry['part']}",
                f"{entry['n']:,}",
                *(_format_change(change) for change in entry["changes"].values()),
                " / ".join(silent) or "–",
                format_percent(entry["abstention"]["lost_share"]),
                format_signed(entry["p50_ms_change"], 1),
            )
        )
    names = [_METRIC_TITLES.get(name, name) for name in entries[0]["changes"]]
    heads = (
        "profile", ">n", *(f">{name}" for name in names), ">silent", ">hits lost", ">ms",
    )  # fmt: skip
    note = "change and 95 % interval, paired by question; * is unlikely to be noise"
    yield ReportTable("Without each part", heads, tuple(rows), note)


def _format_change(change: Json) -> str:
    mark = "*" if change["significant"] else ""
    value, low, high = (format_signed(change[name]) for name in ("value", "low", "high"))
    return f"{value} ({low} to {high}){mark}"


def _regression_table(against: Json) -> ReportTable:
    rows = tuple(
        (row["profile"], *_difference_cells(row), row["verdict"]) for row in against["rows"]
    )
    heads = (
        "profile", "metric", ">n", ">then", ">now", ">change", "95 %", ">p", "", "verdict",
    )  # fmt: skip
    return ReportTable(f"Against {against['file']}", heads, rows, against["note"])


_COLUMN_GAP = 2


def print_tables(out: Printer, tables: Iterable[ReportTable]) -> None:
    """Print each table under its title, with its note."""
    for sheet in tables:
        out.line()
        out.line(bold(sheet.title))
        room = shutil.get_terminal_size().columns
        widths = _column_widths(sheet)
        if out.terminal and sum(widths) + _COLUMN_GAP * len(widths) <= room:
            _print_rich(out, sheet, widths, room)
        else:
            _print_aligned(out, sheet)
        if sheet.note:
            out.line(dim(sheet.note))


def _column_widths(sheet: ReportTable) -> list[int]:
    """Minimum column widths: the longest cell, or the longest word of the heading."""
    needed = []
    for place, head in enumerate(sheet.heads):
        words = head.removeprefix(">").split()
        cells = [row[place] for row in sheet.rows]
        needed.append(max((display_width(text) for text in (*words, *cells)), default=0))
    return needed


def _print_aligned(out: Printer, sheet: ReportTable) -> None:
    heads = [Column(head.removeprefix(">"), right=head.startswith(">")) for head in sheet.heads]
    print_table(Printer(out.stream, terminal=False, color=out.color), heads, sheet.rows)


def _print_rich(out: Printer, sheet: ReportTable, widths: list[int], terminal_width: int) -> None:
    from rich.console import Console  # only for terminals

    console = Console(
        file=out.stream,
        force_terminal=True,
        color_system="standard" if out.color else None,
        no_color=not out.color,
        width=terminal_width,
        highlight=False,
        emoji=False,
        markup=False,
    )
    console.print(_rich_table(sheet, widths))


def _rich_table(sheet: ReportTable, widths: list[int]) -> Table:
    from rich import box  # only for terminals
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, _COLUMN_GAP - 1, 0, 0),  # the box takes one column between two
        header_style="dim",
    )
    for head, width in zip(sheet.heads, widths, strict=True):
        table.add_column(
            Text(head.removeprefix(">")),
            justify="right" if head.startswith(">") else "left",
            vertical="bottom",
            width=width,
        )
    for row in sheet.rows:
        table.add_row(*(Text(cell, no_wrap=True) for cell in row))
    return table
