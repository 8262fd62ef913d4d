"""What a recall found, for people: hits, reasons, arithmetic, steps."""

from __future__ import annotations

from recollect.cli.app import App
from recollect.cli.printing import (
    Piece,
    Printer,
    bold,
    cyan,
    day,
    dim,
    green,
    one_line,
    plural,
    red,
    yellow,
)
from recollect.explain import WhyNot, explain
from recollect.model import Candidate, Recall
from recollect.present import related, relation_lines
from recollect.reasons import match_reasons, standing

_LABEL = 13  # columns before a hit's text: rank and score


def print_answer(app: App, answer: Recall, *, with_arithmetic: bool = False) -> None:
    """Hits best first, then what the reader should know about the answer as a whole."""
    out = app.out
    for rank, hit in enumerate(answer.hits, start=answer.page.offset + 1):
        print_hit(out, rank, hit)
        for told in relation_lines(related(answer, hit)):
            out.block(yellow(told), indent=_LABEL)
        if with_arithmetic:
            _print_arithmetic(out, hit, answer)
        out.line()
    if not answer.hits:
        _print_nothing(app, answer)
    for timeline in answer.timelines:
        out.line(dim("timeline:"), f" {one_line(timeline.subject)}: {' → '.join(timeline.items)}")
    for warning in answer.warnings:
        out.line(yellow("warning:"), f" {warning}")
    for part in answer.degraded:
        out.line(yellow("degraded:"), f" {part.part}: {part.reason}")
    if answer.hits and not app.quiet:
        out.line(dim(_page(answer)))


def _print_arithmetic(out: Printer, hit: Candidate, answer: Recall) -> None:
    for line in explain(hit).splitlines():
        out.line("    ", dim(line))
    if reasons := match_reasons(hit, answer):
        out.line("    ", dim(f"match reasons: {', '.join(reasons)}"))


def print_hit(out: Printer, rank: int | None, hit: Candidate) -> None:
    """Its place, its score, its text; below, dimmed, what it is and why it came."""
    item = hit.item
    label = (bold(f"{rank or '-':>3}"), "  ", cyan(f"{score_of(hit):<6}"), "  ")
    out.block(item.text, first=label, indent=_LABEL)
    about = (item.id, item.kind, day(item.when), item.source, item.speaker, matched_by(hit),
             ", ".join(standing(hit)))  # fmt: skip
    line = " · ".join(one_line(part) for part in about if part)
    out.block(dim(line), indent=_LABEL)


def matched_by(hit: Candidate) -> str:
    """The channels that found it and what each saw, in a few words."""
    told: list[str] = []
    said: set[str] = set()
    for reason in hit.evidence:
        if reason.by.startswith("channel."):
            place = f" #{reason.rank}" if reason.rank else ""
            # Two channels that saw the same words need not both say so.
            why = f" ({reason.why})" if reason.why and reason.why not in said else ""
            told.append(reason.by.removeprefix("channel.") + place + why)
            said.add(reason.why)
    if not told:
        told = [f"{reason.by}: {reason.why}" for reason in hit.evidence if reason.why][:2]
    return ", ".join(told)


def score_of(hit: Candidate) -> str:
    """Four decimals, or as many as a very small score needs to be told from nothing."""
    small = 0.0 < abs(hit.score) < 0.0005
    return f"{hit.score:.0e}" if small else f"{hit.score:.4f}"


def _page(answer: Recall) -> str:
    page = answer.page
    first, last = page.offset + 1, page.offset + page.returned
    parts = [f"{first}-{last} of {page.total}", plural(page.tokens, "token"), answer.profile]
    if page.has_more:
        limit = "-k" if page.stopped_by == "k" else "--max-tokens"
        parts.append(f"more: --cursor {page.cursor} or a larger {limit}")
    return " · ".join(parts)


_HINTS = {
    "nothing_stored": 'recollect remember "..." stores a first memory; '
    "recollect spaces lists the memories there are",
    "nothing_matched": "other words, or fewer filters",
    "below_gate": 'recollect why-not {id} "..." says what was missing',
}


def _print_nothing(app: App, answer: Recall) -> None:
    """Which of the ways of finding nothing this is, the nearest miss, and a way on."""
    out = app.out
    out.block(yellow(answer.reason))
    miss = answer.nearest_miss
    if miss is not None:
        out.line(dim("nearest miss:"))
        print_hit(out, None, miss)
    if not app.quiet and answer.status in _HINTS:
        hint = _HINTS[answer.status].format(id=miss.item.id if miss else "ID")
        out.line(dim(f"try: {hint}"))


def print_trace(out: Printer, answer: Recall) -> None:
    """Every step with what came in, what it left, how long it took, and its remarks."""
    from recollect.cli.tables import Column, print_table  # start-up time: most ask for none

    heads = [
        Column("step"),
        Column("in", right=True),
        Column("out", right=True),
        Column("ms", right=True),
        Column("note", wide=True),
    ]
    rows: list[tuple[Piece, ...]] = []
    for step in answer.steps:
        name: Piece = step.name
        if step.status != "ok":
            name = yellow(f"{step.name} ({step.status})")
        took = "" if step.status == "skipped" else f"{step.seconds * 1000:.2f}"
        rows.append((name, str(step.came_in or ""), str(len(step.pool)), took, dim(step.note)))
    total = sum(step.seconds for step in answer.steps)
    used = dim(f"profile {answer.profile}, strategy {answer.strategy}")
    rows.append((bold("all"), "", bold(str(len(answer.hits))), bold(f"{total * 1000:.2f}"), used))
    print_table(out, heads, rows)


def print_why_not(out: Printer, result: WhyNot) -> None:
    """The verdict in a sentence, the numbers behind it, and how each channel saw it."""
    out.block(result.item.text, first=(bold(result.item.id), "  "), indent=18)
    out.line()
    verdict = green("returned") if result.returned else red(f"fell out at {result.stage}")
    out.line(verdict, f": {result.reason}")
    if result.score is not None:
        # What a repetition lacked is not score, so none is asked for.
        short = result.needed is not None and result.score < result.needed
        needed = f", needed {result.needed:.4f}" if short else ""
        out.line(dim(f"  score {result.score:.4f}{needed}"))
    if result.looks:
        from recollect.cli.tables import Column, print_table  # start-up time, see above

        out.line()
        heads = [
            Column("channel"),
            Column("score", right=True),
            Column("needed", right=True),
            Column("what it saw", wide=True),
        ]
        rows = [
            (look.channel, _number(look.score), _number(look.needed), look.why)
            for look in result.looks
        ]
        print_table(out, heads, rows)
    if result.remedy and not result.returned:
        out.line(dim(f"try: {result.remedy}"))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
