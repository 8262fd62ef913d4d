"""The report as tables: the same for a terminal, a pipe and a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.eval.scoring import ALL
from recollect.eval.silence import BEARABLE_LOSS

Json = dict[str, Any]

_HEADS = {"ndcg@10": "nDCG@10", "mrr": "MRR", "precision@5": "P@5", "precision@10": "P@10"}
_MAIN = ("recall@5", "recall@10", "hit@5", "all@5", "all@10", "ndcg@10", "mrr", "precision@5")
_WITH_INTERVAL = ("recall@10", "ndcg@10")
MOST_LEFT_OUT = 5


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: what it shows, its headings (``>`` sets a column right), rows, a remark."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def sheets(report: Json) -> Iterator[Sheet]:
    """Every table that the report has something for."""
    profiles = report["profiles"]
    yield _quality(profiles)
    yield from _comparisons(report["comparisons"])
    yield from _abstention(profiles)
    yield _speed(report, profiles)
    for profile in profiles:
        yield _channels(profile)
        yield _stages(profile)
    yield from _ablations(report["ablations"])
    if "against" in report:
        yield _against(report["against"])


def headline(report: Json) -> str:
    """What all numbers were measured on, in one line."""
    on = report["measured_on"]
    skipped = f" ({on['skipped']:,} skipped)" if on["skipped"] else ""
    cases = f"{on['cases']:,} spaces, " if on["cases"] > 1 else ""
    return (
        f"{on['title']}: {cases}{on['memories']:,} memories, "
        f"{on['questions']:,} questions{skipped}, embedder {on['embedder']}, "
        f"seed {on['seed']}"
    )


def left_out(report: Json) -> Iterator[str]:
    """What questions name and no memory is, a line each, so that it can be put right."""
    unknown = report["measured_on"].get("unknown", [])
    for entry in unknown[:MOST_LEFT_OUT]:
        yield f"left out, for no memory is or says it: {entry}"
    if len(unknown) > MOST_LEFT_OUT:
        yield f"and {len(unknown) - MOST_LEFT_OUT:,} more; --json has them all"


def number(value: float | None, digits: int = 3) -> str:
    """A number as tables show it; nothing where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 3) -> str:
    """A difference as tables show it."""
    return "–" if value is None else f"{value:+.{digits}f}"


def percent(value: float | None) -> str:
    """A share as tables show it."""
    return "–" if value is None else f"{value:.1%}"


def _quality(profiles: Sequence[Json]) -> Sheet:
    rows = [
        (
            profile["name"] if view == ALL else "",
            view,
            f"{next(iter(figures.values()))['n']:,}",
            *(_figure(figures[name], interval=name in _WITH_INTERVAL) for name in _MAIN),
        )
        for profile in profiles
        for view, figures in profile["quality"].items()
        if figures
    ]
    heads = ("profile", "questions", ">n", *(f">{_HEADS.get(name, name)}" for name in _MAIN))
    return Sheet(
        "Quality", heads, tuple(rows), "± is half of the 95 % interval over the n questions"
    )


def _figure(figure: Json, *, interval: bool) -> str:
    if not interval:
        return number(figure["value"])
    return f"{figure['value']:.3f} ±{(figure['high'] - figure['low']) / 2:.3f}"


def _comparisons(rows: Sequence[Json]) -> Iterator[Sheet]:
    if rows:
        cells = tuple((f"{row['profile']} – {row['base']}", *_change(row)) for row in rows)
        heads = ("difference", "metric", ">n", ">before", ">after", ">change", "95 %", ">p", "")
        yield Sheet("Profiles compared, by pairs of the same question", heads, cells)


def _change(row: Json) -> tuple[str, ...]:
    return (
        _HEADS.get(str(row["metric"]), str(row["metric"])),
        f"{row['n']:,}",
        number(row["before"]),
        number(row["after"]),
        signed(row["value"]),
        f"{signed(row['low'])} to {signed(row['high'])}",
        number(row["p"]),
        "" if row["significant"] else "may be noise",
    )


def _abstention(profiles: Sequence[Json]) -> Iterator[Sheet]:
    rows = [
        (
            profile["name"],
            kind["kind"],
            f"{kind['n']:,}",
            percent(kind["silent_share"]),
            _lost(profile["abstention"]),
            number(kind["auc_score"]),
            number(kind["auc_gate"]),
            percent(kind["silent_at_loss"]),
        )
        for profile in profiles
        for kind in profile["abstention"]["kinds"]
    ]
    if rows:
        heads = (
            "profile", "questions", ">n", ">answered with nothing", ">true hits lost", ">AUC score",
            ">AUC gate", f">best at {BEARABLE_LOSS:.0%} loss",
        )  # fmt: skip
        note = (
            "AUC: how often the best score of a true hit, or the gate's confidence in it, lies "
            "above that of a question without an answer; last: what a threshold could silence"
        )
        yield Sheet("Abstention", heads, tuple(rows), note)


def _lost(account: Json) -> str:
    return f"{account['lost']:,} of {account['true_hits']:,} ({percent(account['lost_share'])})"


def _speed(report: Json, profiles: Sequence[Json]) -> Sheet:
    rows = [
        (
            profile["name"],
            f"{profile['speed']['n']:,}",
            number(profile["speed"]["p50_ms"], 1),
            number(profile["speed"]["p95_ms"], 1),
            number(profile["speed"]["cpu_p50_ms"], 1),
            number(profile["cost"]["tokens"], 0),
            number(profile["cost"]["recall"]),
            number(profile["cost"]["recall_per_1000_tokens"]),
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
        else "the memories were stored before; "
    )
    return Sheet(
        "Speed and cost",
        heads,
        tuple(rows),
        f"{stored}an answer is what the profile's own limits leave of it",
    )


def _channels(profile: Json) -> Sheet:
    rows = [
        (
            row["channel"],
            f"{row['n'] - row['skipped'] - row['degraded']:,} of {row['n']:,}",
            number(row["returned"], 1),
            percent(row["found_share"]),
            f"{row['unique']:,} ({percent(row['unique_share'])})",
            f"{row['unique_answered']:,}",
            number(row["milliseconds"], 2),
            _verdict(row),
        )
        for row in profile["channels"]
    ]
    heads = (
        "channel", ">asked", ">returned", ">of the relevant", ">only by it", ">of those in top 10",
        ">ms", "",
    )  # fmt: skip
    return Sheet(f"Channels of {profile['name']}", heads, tuple(rows))


def _verdict(row: Json) -> str:
    if row["dead"]:
        return "dead"
    return "" if row["unique"] else "nothing alone"


def _stages(profile: Json) -> Sheet:
    rows = [
        (
            row["stage"],
            f"{row['n']:,}",
            number(row["left"], 1),
            number(row["recall_after"]),
            signed(row["recall_after"] - row["recall_before"]) if place else "",
            signed(row["rise"], 2) if place else "",
            f"{row['up']:,} / {row['down']:,}" if place else "",
            f"{row['gained']:,} / {row['lost']:,}" if place else "",
            number(row["milliseconds"], 2),
        )
        for place, row in enumerate(profile["stages"])
    ]
    heads = (
        "stage", ">n", ">left", ">recall@10 after", ">change", ">mean rise", ">up / down",
        ">in / out",
        ">ms",
    )  # fmt: skip
    note = "rise: places the first relevant one moved up; in / out: relevant ones that came, went"
    return Sheet(f"Stages of {profile['name']}", heads, tuple(rows), note)


def _ablations(entries: Sequence[Json]) -> Iterator[Sheet]:
    if not entries:
        return
    rows = []
    for entry in entries:
        silent = [percent(kind["silent_share"]) for kind in entry["abstention"]["kinds"]]
        rows.append(
            (
                f"{entry['profile']} without {entry['part']}",
                f"{entry['n']:,}",
                *(_delta(change) for change in entry["changes"].values()),
                " / ".join(silent) or "–",
                percent(entry["abstention"]["lost_share"]),
                signed(entry["p50_ms_change"], 1),
            )
        )
    names = [_HEADS.get(name, name) for name in entries[0]["changes"]]
    heads = (
        "profile", ">n", *(f">{name}" for name in names), ">silent", ">hits lost", ">ms",
    )  # fmt: skip
    note = "change and 95 % interval by pairs of the same question; * is unlikely to be noise"
    yield Sheet("Without each part", heads, tuple(rows), note)


def _delta(change: Json) -> str:
    mark = "*" if change["significant"] else ""
    return f"{signed(change['value'])} ({signed(change['low'])} to {signed(change['high'])}){mark}"


def _against(against: Json) -> Sheet:
    rows = tuple((row["profile"], *_change(row), row["verdict"]) for row in against["rows"])
    heads = (
        "profile", "metric", ">n", ">then", ">now", ">change", "95 %", ">p", "", "verdict",
    )  # fmt: skip
    return Sheet(f"Against {against['file']}", heads, rows, against["note"])
