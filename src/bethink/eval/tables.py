"""The report as tables, for a terminal or a pipe.

A figure is never cut: its last digit may be the one that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bethink.cli.output import Printer, bold, columns, dim, print_table
from bethink.core import plural
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.eval.metrics import ALL
from bethink.eval.runner import BM25, COSINE, MEASURED_AGAINST, RRF

_METRIC_TITLES = {"ndcg@10": "nDCG@10", "mrr": "MRR", "precision@5": "P@5", "precision@10": "P@10"}
_WITH_INTERVAL = ("recall@10", "ndcg@10")
MAX_UNRESOLVED_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table: title, headings (``>`` aligns a column right), rows and a note."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


class Cells(NamedTuple):
    """A column: heading, value (a function of the row, or field names with dots) and its format."""

    head: str
    value: str | Callable[[Json], object]
    form: str = ""

    def text(self, row: Json) -> str:
        """Return the cell of a row; a dash where there is no value."""
        value: object = row
        for name in self.value.split(".") if isinstance(self.value, str) else ():
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(self.value, str):
            value = self.value(row)
        return "–" if value is None else format(value, self.form)


COUNT, NUMBER, TENTHS, SIGNED, PERCENT = ",", ".3f", ".1f", "+.3f", ".1%"


def make_table(
    title: str, columns: Sequence[Cells], rows: Iterable[Json], note: str = ""
) -> ReportTable:
    """Make a table of rows of data."""
    heads = tuple(column.head for column in columns)
    cells = tuple(tuple(column.text(row) for column in columns) for row in rows)
    return ReportTable(title, heads, cells, note)


def report_tables(report: Json) -> Iterator[ReportTable]:
    """Yield every table that the report has data for; of several sets those of all together."""
    reports = report.get("sets", [report])
    yield _quality_table(reports)
    if "sets" not in report:
        yield from _comparison_table(report["comparisons"])
    yield from _baseline_table(reports)
    yield from _abstention_table(reports)
    yield from _calibration_tables(reports, report.get("pooled", []))
    if "sets" not in report:
        yield _speed_table(report, report["profiles"])
        yield from _ablation_table(report["ablations"])
    if "against" in report:
        yield _regression_table(report["against"])


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
    """Lines for references that match no memory, and for texts that were stored in parts."""
    measured = [one["measured_on"] for one in report.get("sets", [report])]
    split = [name for on in measured for name in on["split"]]
    if split:
        shown = ", ".join(split[:MAX_UNRESOLVED_SHOWN])
        more = len(split) - MAX_UNRESOLVED_SHOWN
        yield f"stored in parts, because it is over the limit of a memory: {shown}" + (
            f" and {more:,} more" if more > 0 else ""
        )
    unknown = [entry for on in measured for entry in on["unknown"]]
    for entry in unknown[:MAX_UNRESOLVED_SHOWN]:
        yield f"skipped, because no memory has this id or text: {entry}"
    if len(unknown) > MAX_UNRESOLVED_SHOWN:
        yield f"and {len(unknown) - MAX_UNRESOLVED_SHOWN:,} more; --json lists all"


def _metric_title(name: str) -> str:
    return _METRIC_TITLES.get(name, name)


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


def _name_head(reports: Sequence[Json]) -> str:
    return "set" if len(reports) > 1 else "profile"


def _type_rows(reports: Sequence[Json]) -> list[Json]:
    """The rows of all types; the first of a profile has its name."""
    return [
        {
            **row,
            "name": name if row["type"] == ALL else "",
            "estimates": profile["quality"].get(row["type"]),
        }
        for name, profile in _named_profiles(reports)
        for row in profile["types"]
    ]


_SET_METRICS = ("hit@1", "hit@3", "hit@10", "recall@10", "all@5", "all@10", "ndcg@10")
_STATUSES = ("found", "unsure", "silent")
_STATUS_CELLS = tuple(Cells(f">{status}", f"{status}_share", PERCENT) for status in _STATUSES)


# The whole answer as it is given: how long, what of it is weak, and what it holds.
_COST_CELLS = (
    Cells(">hits", "cost.hits", TENTHS),
    Cells(">weak of found", "cost.weak_share", PERCENT),
    Cells(">tokens", "cost.tokens", ".0f"),
    Cells(">recall in it", "cost.recall", NUMBER),
)


def _quality_table(reports: Sequence[Json]) -> ReportTable:
    columns = (
        Cells(_name_head(reports), "name"),
        Cells("questions", "type"),
        Cells(">n", "n", COUNT),
        *map(_quality_column, _SET_METRICS),
        Cells(">newer first", "newer_first", NUMBER),
        *_STATUS_CELLS,
        *_COST_CELLS,
    )
    asked = "; ".join(dict.fromkeys(map(how_asked, reports)))
    note = f"measured {asked}; ± is half of the 95 % interval over the n questions"
    title = "Quality by set and type" if len(reports) > 1 else "Quality"
    return make_table(title, columns, _type_rows(reports), note)


def _quality_column(metric: str) -> Cells:
    def with_interval(row: Json) -> str | None:
        figure = (row["estimates"] or {}).get(metric)
        half = (figure["high"] - figure["low"]) / 2 if figure else 0.0
        return f"{figure['value']:.3f} ±{half:.3f}" if figure else None

    if metric in _WITH_INTERVAL:
        return Cells(f">{_metric_title(metric)}", with_interval)
    return Cells(f">{_metric_title(metric)}", f"quality.{metric}", NUMBER)


BEHIND = "behind"
_BASELINE_METRICS = ("recall@10", "ndcg@10")


def _baseline_table(reports: Sequence[Json]) -> Iterator[ReportTable]:
    """Our figure, those of the baselines, our ratio to the better, and a mark."""
    columns = (
        Cells(_name_head(reports), "name"),
        Cells("questions", "type"),
        Cells(">n", "n", COUNT),
        *(column for metric in _BASELINE_METRICS for column in _baseline_columns(metric)),
        Cells("", behind_mark),
    )
    note = (
        "ratio to the better of BM25 and cosine of the same embedder; the baselines return "
        "their first k memories whole, without a token budget, and are never silent"
    )
    rows = [row for row in _type_rows(reports) if row["baselines"]]
    if rows:
        yield make_table("Against plain baselines", columns, rows, note)


def _baseline_columns(metric: str) -> Iterator[Cells]:
    def ratio(row: Json) -> float | None:
        best = max(_plain_values(row, metric), default=0.0)
        return row["quality"][metric] / best if best else None

    yield Cells(f">{_metric_title(metric)}", f"quality.{metric}", NUMBER)
    for method in (BM25, COSINE, RRF):
        yield Cells(f">{method}", f"baselines.{method}.{metric}", NUMBER)
    yield Cells(">ratio", ratio, ".2f")


def _plain_values(row: Json, metric: str) -> list[float]:
    return [row["baselines"][name][metric] for name in MEASURED_AGAINST if name in row["baselines"]]


def behind_mark(row: Json) -> str:
    """Name the metrics in which a baseline is ahead; empty where none is."""
    behind = [
        _metric_title(metric)
        for metric in _BASELINE_METRICS
        if row["quality"][metric] < max(_plain_values(row, metric), default=0.0)
    ]
    return f"{BEHIND}: {', '.join(behind)}" if behind else ""


def _calibration_tables(reports: Sequence[Json], pooled: Sequence[Json]) -> Iterator[ReportTable]:
    """ECE and AUC by set and of all together, and the reliability diagram of the last."""
    named = [(name, profile["calibration"]) for name, profile in _named_profiles(reports)]
    named += [(f"all sets, {one['name']}", one["calibration"]) for one in pooled]
    rated = [{**found, "name": name} for name, found in named if found]
    if not rated:
        return
    columns = (
        Cells("set" if pooled else "profile", "name"),
        Cells(">answers", "n", COUNT),
        Cells(">on subject", "on_subject", COUNT),
        Cells(">ECE", "ece", NUMBER),
        Cells(">AUC", "auc", NUMBER),
    )
    note = (
        "ECE: mean distance of the confidence from the share whose subject is stored, in ten "
        "bins of equal weight; questions on stored subjects and the others weigh half each; "
        "AUC: the former against the latter"
    )
    yield make_table("Calibration", columns, rated, note)
    bins = (
        Cells("confidence", lambda one: f"{one['low']:.2f} to {one['high']:.2f}"),
        Cells(">weight", "share", PERCENT),
        Cells(">said", "confidence", NUMBER),
        Cells(">on subject", "right", NUMBER),
        Cells("0 to 1", lambda one: _reliability_line(one["confidence"], one["right"])),
    )
    note = "#: the share whose subject is stored; |: what was said on average"
    yield make_table(f"Reliability of {rated[-1]['name']}", bins, rated[-1]["bins"], note)


_DIAGRAM_WIDTH = 40


def _reliability_line(said: float, right: float) -> str:
    """A bar of the share that was right, with a mark where the confidence lies."""
    line = [
        "#" if place < round(right * _DIAGRAM_WIDTH) else "." for place in range(_DIAGRAM_WIDTH)
    ]
    line[min(_DIAGRAM_WIDTH - 1, int(said * _DIAGRAM_WIDTH))] = "|"
    return "".join(line)


_METRIC_CELLS = Cells("metric", lambda row: _metric_title(str(row["metric"])))
_CHANGE_CELLS = (
    Cells(">change", "value", SIGNED),
    Cells("95 %", lambda row: f"{row['low']:+.3f} to {row['high']:+.3f}"),
    Cells(">p", "p", NUMBER),
)
_NOISE_CELLS = Cells("", lambda row: "" if row["significant"] else "may be noise")


def difference_columns(before: str, after: str) -> tuple[Cells, ...]:
    """The columns of a paired difference: how many, the two values, the change."""
    values = Cells(f">{before}", "before", NUMBER), Cells(f">{after}", "after", NUMBER)
    return (Cells(">n", "n", COUNT), *values, *_CHANGE_CELLS)


def _comparison_table(rows: Sequence[Json]) -> Iterator[ReportTable]:
    columns = (
        Cells("difference", lambda row: f"{row['profile']} – {row['base']}"),
        *(_METRIC_CELLS, *difference_columns("before", "after"), _NOISE_CELLS),
    )
    if rows:
        yield make_table("Profiles compared, paired by question", columns, rows)


def _abstention_table(reports: Sequence[Json]) -> Iterator[ReportTable]:
    rows = [
        {
            **kind,
            "name": "" if place else name,
            **{f"hits_{loss}": "" if place else _format_lost(profile["abstention"], loss)
               for loss in ("silenced", "lost")},
        }
        for name, profile in _named_profiles(reports)
        for place, kind in enumerate(profile["abstention"]["kinds"])
    ]  # fmt: skip
    columns = (
        Cells(_name_head(reports), "name"),
        Cells("questions", "kind"),
        Cells(">n", "n", COUNT),
        *_STATUS_CELLS,
        Cells(">true hits silenced", "hits_silenced"),
        Cells(">true hits lost", "hits_lost"),
    )
    note = (
        "none of these has an answer in the memory. A true hit is in the first ten before "
        "the gate: silenced where the answer is empty, lost where the hit is not in it"
    )
    if rows:
        yield make_table("Abstention", columns, rows, note)


def _format_lost(account: Json, name: str) -> str:
    share = Cells("", f"{name}_share", PERCENT).text(account)
    return f"{account[name]:,} of {account['true_hits']:,} ({share})"


_SPEED_COLUMNS = (
    Cells("profile", "name"),
    Cells(">n", "speed.n", COUNT),
    Cells(">p50 ms", "speed.p50_ms", TENTHS),
    Cells(">p95 ms", "speed.p95_ms", TENTHS),
    Cells(">CPU p50 ms", "speed.cpu_p50_ms", TENTHS),
    *_COST_CELLS,
    Cells(">recall per 1,000 tokens", "cost.recall_per_1000_tokens", NUMBER),
)


def _speed_table(report: Json, profiles: Sequence[Json]) -> ReportTable:
    rate = report["measured_on"]["memories_per_second"]
    stored = "the memories were stored earlier; "
    if rate:
        stored = f"{report['measured_on']['stored']:,} memories stored at {rate:,.0f} a second; "
    note = f"{stored}tokens are those of the answer as it is given; weak is below 5 % relevance"
    return make_table("Speed and cost", _SPEED_COLUMNS, profiles, note)


def _ablation_table(entries: Sequence[Json]) -> Iterator[ReportTable]:
    if not entries:
        return
    columns = (
        Cells("profile", lambda entry: f"{entry['profile']} without {entry['part']}"),
        Cells(">n", "n", COUNT),
        *map(_ablated_metric, entries[0]["changes"]),
        Cells(">silent", lambda entry: " / ".join(_silent_shares(entry)) or None),
        Cells(">hits lost", "abstention.lost_share", PERCENT),
        Cells(">ms", "p50_ms_change", "+.1f"),
    )
    note = "change and 95 % interval, paired by question; * is unlikely to be noise"
    yield make_table("Without each part", columns, entries, note)


def _silent_shares(entry: Json) -> list[str]:
    return [_STATUS_CELLS[-1].text(kind) for kind in entry["abstention"]["kinds"]]


def _ablated_metric(metric: str) -> Cells:
    def change(entry: Json) -> str:
        found = entry["changes"][metric]
        value, low, high = (format(found[name], SIGNED) for name in ("value", "low", "high"))
        return f"{value} ({low} to {high}){'*' if found['significant'] else ''}"

    return Cells(f">{_metric_title(metric)}", change)


def _regression_table(against: Json) -> ReportTable:
    columns = (
        *(Cells("profile", "profile"), _METRIC_CELLS, *difference_columns("then", "now")),
        *(_NOISE_CELLS, Cells("verdict", "verdict")),
    )
    return make_table(f"Against {against['file']}", columns, against["rows"], against["note"])


def print_tables(out: Printer, tables: Iterable[ReportTable]) -> None:
    """Print each table under its title, with its note."""
    for sheet in tables:
        out.line()
        out.line(bold(sheet.title))
        print_table(out, columns(*sheet.heads), sheet.rows)
        if sheet.note:
            out.line(dim(sheet.note))
