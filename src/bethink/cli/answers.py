"""Answer a recall, and print results and memories: hits, reasons, scores, items, revisions.

Nothing here needs click, so that a plain `recall` starts without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from bethink.cli.app import App, BadUse
from bethink.cli.help import PROGRAM
from bethink.cli.output import (
    Piece,
    Printer,
    Styled,
    bold,
    columns,
    cyan,
    dim,
    format_date,
    format_time,
    green,
    one_line,
    print_table,
    red,
    yellow,
)
from bethink.core import plural
from bethink.core.ids import short_id
from bethink.core.json_values import format_moment
from bethink.core.once import count_once
from bethink.errors import BethinkError, NotFound
from bethink.model import ELSEWHERE, OLDER, Candidate, Entity, Item, Recall
from bethink.model.anchor import anchor_name
from bethink.model.answer import Relation, count_below_relevance
from bethink.model.fields import ITEM_FIELDS
from bethink.render.quoting import TRUST_LABELS, passage_label
from bethink.retrieval.answer_text import UNSURE_NOTICE, relation_lines, relations_of_hit
from bethink.retrieval.explain import WhyNot, explain, item_reasons, match_reasons
from bethink.retrieval.heat import pace_of
from bethink.retrieval.stages.assemble import warnings_for

if TYPE_CHECKING:
    from bethink.memory import Memory
    from bethink.retrieval.profile import Profile
    from bethink.worker.query import QueryRequest


def require_profile(memory: Memory, name: str | None, command: str) -> Profile:
    """Return the profile; raise BadUse if there is none of that name.

    Not NotFound: exit code 1 would mean that nothing was found.
    """
    try:
        return memory.profile(name)
    except NotFound as error:
        message = f"{error.message}; {error.remedy}"
        raise BadUse(message, remedy=f"{PROGRAM} {command} --help") from error


def answer_recall(
    app: App,
    memory: Memory,
    request: QueryRequest,
    *,
    explain_scores: bool = False,
    candidates: int | None = None,
    as_text: bool = False,
) -> int:
    """Run a recall and print its answer; return the exit code."""
    profile = require_profile(memory, request.profile, "recall")
    with count_once(request.id):
        answer = memory.recall(request.text, profile=profile, **request.keywords)
    if app.json:
        from bethink.render.wire import recall_json  # only for --json

        app.out.json(recall_json(answer, trace=request.steps, candidates=candidates))
    elif as_text:
        from bethink.retrieval.answer_text import render_text  # only for --text

        app.out.raw(render_text(answer, profile.text))
    else:
        print_answer(app, answer, explain_scores=explain_scores)
    if request.steps and not app.json:
        print_trace(app.out, answer)
    return 0 if answer.hits else 1


# Fields shown on a line each, in this order; those at their defaults are omitted.
_FIELDS_SHOWN = tuple(field.name for field in ITEM_FIELDS if field.shown)
_ALWAYS_SHOWN = ("kind", "level")


def print_item(out: Printer, item: Item) -> None:
    """Print one memory: its text, then one field per line."""
    out.line(bold(item.id), dim(f"  revision {item.rev}"))
    out.line()
    out.block(item.text, indent=2, stored=True)
    out.line()
    fields = [("stored", f"{format_time(item.stored_at)} by {shown_actor(item.writer)}")]
    fields.append(("source", f"{item.source} ({item.source_class}, trust {item.trust} of 3)"))
    defaults = Item(id="", text="", stored_at=item.stored_at, source="")
    fields += [
        (name.replace("_", " "), _format_value(_shown(item, name)))
        for name in _FIELDS_SHOWN
        if name in _ALWAYS_SHOWN or getattr(item, name) != getattr(defaults, name)
    ]
    for name, value in fields:
        out.block(value, indent=20, first=("  ", dim(f"{name:<18}")))


def _shown(item: Item, name: str) -> object:
    """Return a field as it is shown: of an anchor only its path::symbol."""
    if name == "anchors":
        return tuple(anchor_name(anchor) for anchor in item.anchors)
    return getattr(item, name)


def _format_value(value: object) -> str:
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return str(dict(value)) if isinstance(value, Mapping) else str(value)


def print_items(
    out: Printer, items: Sequence[Item], *, by: str = "stored", highlighted: str | None = None
) -> None:
    """Print one memory per line: when it was ``stored``, or ``when`` it happened."""
    rows = [
        (
            _format_id(out, item, highlighted),
            dim(format_time(item.stored_at if by == "stored" else item.when)),
            item.kind,
            one_line(_listed_text(item, by), 300),
        )
        for item in items
    ]
    print_table(out, columns("id", by, "kind", "*text"), rows)


def _listed_text(item: Item, by: str) -> str:
    """Who said it and the text, after the day it happened where no other column tells that."""
    text = f"{item.speaker}: {item.text}" if item.speaker else item.text
    day = format_date(item.when)
    return text if by == "when" or day == format_date(item.stored_at) else f"[{day}] {text}"


def _format_id(out: Printer, item: Item, highlighted: str | None) -> Styled:
    shown = shown_id(out, item.id)
    return cyan(shown) if item.id == highlighted else bold(shown)


def shown_id(out: Printer, item_id: str) -> str:
    """An id to read and type: short at a terminal, whole where a program reads it."""
    return short_id(item_id) if out.terminal else item_id


def shown_actor(actor: str) -> str:
    """Who did something, a person by name: the journal has only an id."""
    way, colon, who = actor.rpartition(":")
    if not colon:
        return actor
    from bethink.access.people import Directory  # seldom needed

    with suppress(BethinkError):  # a damaged list of people hides nothing else
        who = Directory().name_of(who)
    return f"{way}:{who}"


def print_revisions(out: Printer, revisions: Sequence[Item]) -> None:
    """Print each revision with its validity period and what it changed."""
    heads = columns(">rev", "since", "until", "*change")
    rows = []
    before: Item | None = None
    for item in revisions:
        until = format_time(item.live_to) if item.live_to else "now"
        ended = f" ({item.ended_by})" if item.ended_by else ""
        since = format_time(item.live_from or item.stored_at)
        rows.append((str(item.rev), since, until + ended, _describe_change(before, item)))
        before = item
    print_table(out, heads, rows)


def _describe_change(before: Item | None, item: Item) -> str:
    if before is None:
        return item.text
    changes = [
        f"{name.replace('_', ' ')}: "
        f"{_format_value(_shown(before, name))} → {_format_value(_shown(item, name))}"
        for name in ("text", *_FIELDS_SHOWN)
        if name not in ("live_to", "ended_by", "recalls", "last_recalled_at")
        and getattr(before, name) != getattr(item, name)
    ]
    return "\n".join(changes) or "no change"


def print_entities(out: Printer, entities: Sequence[Entity]) -> None:
    """Print one entity per line: momentum, memory count, layers, names."""
    heads = columns("momentum", ">memories", "kind", "*name", "*layers", "last seen")
    rows = [
        (
            f"{entity.momentum:4.1f} {pace_of(entity.momentum)}",
            f"{entity.mentions:,}",
            dim(entity.kind),
            bold(", ".join((entity.name, *entity.aliases))),
            dim(_layer_counts(entity)),
            dim(format_date(entity.last_seen_at)),
        )
        for entity in entities
    ]
    print_table(out, heads, rows)


def _layer_counts(entity: Entity) -> str:
    counts = [f"{layer} {count}" for layer, count in entity.layers]
    return ", ".join([*counts, f"pinned {entity.pinned}"] if entity.pinned else counts)


_LABEL_WIDTH = 13  # columns before a hit's text: rank and score


def print_answer(app: App, answer: Recall, *, explain_scores: bool = False) -> None:
    """Print hits best first, then warnings and paging of the answer as a whole."""
    out = app.out
    if answer.hits and answer.status == "unsure":
        out.line(yellow(UNSURE_NOTICE))
    for rank, hit in enumerate(answer.hits, start=answer.page.offset + 1):
        print_hit(out, rank, hit)
        others = [one for one in relations_of_hit(answer, hit) if not _is_marked(one, answer)]
        for line in relation_lines(others):
            out.block(yellow(line), indent=_LABEL_WIDTH)
        if explain_scores:
            _print_score_details(out, hit, answer)
        out.line()
    if not answer.hits:
        _print_empty_answer(app, answer)
    _print_remarks(out, answer)
    if explain_scores:
        print_confidence(out, answer)
    if answer.hits and not app.quiet:
        out.line(dim(_page_summary(answer)))


def _is_marked(relation: Relation, answer: Recall) -> bool:
    """Whether the older of the two is a hit that names the newer one."""
    ends = {relation.item, relation.other}
    return any({hit.item.id, hit.see_newer} == ends for hit in answer.hits)


def _print_remarks(out: Printer, answer: Recall) -> None:
    for timeline in answer.timelines:
        out.line(dim("timeline:"), f" {one_line(timeline.subject)}: {' → '.join(timeline.items)}")
    repeated = warnings_for((), answer.relations)  # told at the hits
    for warning in answer.warnings:
        if warning not in repeated:
            out.line(yellow("warning:"), f" {warning}")
    for part in answer.degraded:
        out.line(yellow("degraded:"), f" {part.part}: {part.reason}")


def print_confidence(out: Printer, answer: Recall) -> None:
    """Print how probably something stored is on the subject, and what that is made of."""
    told = "probability that something stored is on this subject"
    out.line(f"confidence {answer.confidence:.2f}", dim(f" ({answer.status}): {told}"))
    for reason in answer.assessed:
        out.line("    ", dim(f"{reason.contribution:+6.2f}  {reason.why}"))
    if answer.assessed:
        odds = sum(reason.contribution for reason in answer.assessed)
        out.line("    ", dim(f"{odds:+6.2f}  log-odds in all: {answer.confidence:.0%}"))


def _print_score_details(out: Printer, hit: Candidate, answer: Recall) -> None:
    for line in explain(hit).splitlines():
        out.line("    ", dim(line))
    if reasons := match_reasons(hit, answer):
        out.line("    ", dim(f"match reasons: {', '.join(reasons)}"))


def print_hit(out: Printer, rank: int | None, hit: Candidate) -> None:
    """Print rank, relevance and text; below, dimmed, its metadata and match reasons."""
    item = hit.item
    label = (bold(f"{rank or '-':>3}"), "  ", cyan(f"{format_relevance(hit):<6}"), "  ")
    out.block(hit.marked_text, first=label, indent=_LABEL_WIDTH, stored=True)
    if hit.passage is not None:
        out.block(dim(f"{passage_label(hit)}; --whole shows all"), indent=_LABEL_WIDTH)
    if hit.see_newer:
        out.block(yellow(f"{OLDER} {shown_id(out, hit.see_newer)}"), indent=_LABEL_WIDTH)
    if hit.code_note:
        out.block(yellow(hit.code_note), indent=_LABEL_WIDTH)
    if hit.conflict:
        out.block(yellow(f"{ELSEWHERE} {hit.conflict}"), indent=_LABEL_WIDTH)
    if item.trust == 0:
        out.block(yellow(f"trust 0: {TRUST_LABELS[0]}"), indent=_LABEL_WIDTH)
    details = (shown_id(out, item.id), item.kind, format_moment(item.when), item.source,
               item.speaker, matched_by(hit), ", ".join(item_reasons(hit)))  # fmt: skip
    line = " · ".join(one_line(part) for part in details if part)
    out.block(dim(line), indent=_LABEL_WIDTH)


def matched_by(hit: Candidate) -> str:
    """List the retrievers that found the hit and what each matched."""
    matches: list[str] = []
    shown: set[str] = set()
    for reason in hit.evidence:
        if reason.by.startswith("channel."):
            place = f" #{reason.rank}" if reason.rank else ""
            # Print a reason that two retrievers share only once.
            why = f" ({reason.why})" if reason.why and reason.why not in shown else ""
            matches.append(reason.by.removeprefix("channel.") + place + why)
            shown.add(reason.why)
    if not matches:
        matches = [f"{reason.by}: {reason.why}" for reason in hit.evidence if reason.why][:2]
    return ", ".join(matches)


def format_relevance(hit: Candidate) -> str:
    """Format the relevance as a percentage; the score where none was estimated."""
    return format_score(hit) if hit.relevance is None else f"{hit.relevance:.0%}"


def format_score(hit: Candidate) -> str:
    """Format a score with four decimals, or in scientific notation if very small."""
    small = 0.0 < abs(hit.score) < 0.0005
    return f"{hit.score:.0e}" if small else f"{hit.score:.4f}"


def _page_summary(answer: Recall) -> str:
    page = answer.page
    first, last = page.offset + 1, page.offset + page.returned
    parts = [f"{first}-{last} of {page.total}", plural(page.tokens, "token"), answer.profile]
    if page.has_more:
        limit = "-k" if page.stopped_by == "k" else "--max-tokens"
        parts.append(f"more: --cursor {page.cursor} or a larger {limit}")
    return " · ".join(parts)


_HINTS = {
    "nothing_stored": 'bethink remember "..." stores a first memory; '
    "bethink spaces lists the existing spaces",
    "nothing_matched": "use other words, or fewer filters",
}
_NEAR_MISS_HINT = 'bethink why-not {id} "..." shows what was missing; {option} 0 returns it'


def _print_empty_answer(app: App, answer: Recall) -> None:
    """Print why the answer is empty, the nearest miss, and a hint."""
    out = app.out
    out.block(yellow(answer.reason))
    miss = answer.nearest_miss
    if miss is not None:
        out.line(dim("nearest miss:"))
        print_hit(out, None, miss)
    if not app.quiet and answer.status in _HINTS:
        is_cut = count_below_relevance(answer.steps)
        option = "--min-relevance" if is_cut else "--min-confidence"
        near = _NEAR_MISS_HINT.format(id=miss.item.id, option=option) if miss else ""
        out.line(dim(f"try: {near or _HINTS[answer.status]}"))


def print_trace(out: Printer, answer: Recall) -> None:
    """Print every step: pool size before and after, duration, note."""
    heads = columns("step", ">in", ">out", ">ms", "*note")
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
    """Print the verdict, the scores behind it, and what each retriever saw."""
    out.block(result.item.text, first=(bold(result.item.id), "  "), indent=18, stored=True)
    out.line()
    verdict = green("returned") if result.returned else red(f"dropped at {result.stage}")
    out.line(verdict, f": {result.reason}")
    if result.score is not None:
        # A repetition is not dropped for its score, so no needed score is shown.
        short = result.needed is not None and result.score < result.needed
        needed = f", needed {result.needed:.4f}" if short else ""
        out.line(dim(f"  score {result.score:.4f}{needed}"))
    if result.looks:
        out.line()
        heads = columns("retriever", ">score", ">needed", "*finding")
        rows = [
            (look.channel, _format_number(look.score), _format_number(look.needed), look.why)
            for look in result.looks
        ]
        print_table(out, heads, rows)
    if result.remedy and not result.returned:
        out.line(dim(f"try: {result.remedy}"))


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
