"""The commands `recall`, `why-not` and `compare`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from bethink.cli.answers import format_score, print_why_not, require_profile
from bethink.cli.app import App
from bethink.cli.options import (
    F,
    command,
    complete_ids,
    filter_options,
    option,
    read_text_argument,
    recall_options,
)
from bethink.cli.output import Column, Piece, Printer, bold, dim, one_line, print_table, yellow
from bethink.cli.queries import run_query
from bethink.core import plural
from bethink.model import Candidate, Recall
from bethink.worker.query import QueryRequest

if TYPE_CHECKING:
    from bethink.core.json_values import Json
    from bethink.memory import Memory


# More columns of text than this are unreadable in 80 characters.
_MAX_COLUMNS = 3
_RRF_K = 60


def print_comparison(out: Printer, answers: Mapping[str, Recall]) -> None:
    """Print few profiles with texts side by side, more of them as a table of ranks."""
    found = {name: [hit.item.id for hit in answer.hits] for name, answer in answers.items()}
    shared = set.intersection(*(set(ids) for ids in found.values())) if found else set()
    if any(found.values()):
        if len(answers) <= _MAX_COLUMNS:
            _print_side_by_side(out, answers, shared)
        else:
            _print_ranks(out, answers, shared)
    for name, answer in answers.items():
        if not answer.hits:
            out.line(yellow(name), f": {answer.reason}")
        for part in answer.degraded:
            out.line(yellow(f"{name} degraded:"), f" {part.part}: {part.reason}")
    if any(found.values()):
        out.block(dim(_agreement_summary(found, shared)))


def _print_side_by_side(out: Printer, answers: Mapping[str, Recall], shared: set[str]) -> None:
    """Print one column per profile; hits that only some of them found are marked."""
    heads = [Column("#", right=True), *(Column(name, wide=True) for name in answers)]
    depth = max(len(answer.hits) for answer in answers.values())
    rows = [
        (str(place + 1), *(_cell(answer, place, shared) for answer in answers.values()))
        for place in range(depth)
    ]
    print_table(out, heads, rows)


def _cell(answer: Recall, place: int, shared: set[str]) -> Piece:
    if place >= len(answer.hits):
        return ""
    hit = answer.hits[place]
    mark = "" if hit.item.id in shared else "* "
    text = f"{mark}{format_score(hit)} {one_line(hit.marked_text, 120)} [{hit.item.id}]"
    return text if hit.item.id in shared else yellow(text)


def _print_ranks(out: Printer, answers: Mapping[str, Recall], shared: set[str]) -> None:
    """Print one memory per line with its rank in every profile, best agreement first."""
    legend = "   ".join(f"{number} {name}" for number, name in enumerate(answers, 1))
    out.block(bold(legend))
    if not out.terminal:
        out.line()
    places: dict[str, dict[str, int]] = {}
    hits: dict[str, Candidate] = {}
    for name, answer in answers.items():
        for place, hit in enumerate(answer.hits, answer.page.offset + 1):
            hits.setdefault(hit.item.id, hit)
            places.setdefault(hit.item.id, {})[name] = place
    agreed = sorted(hits, key=lambda item_id: (-_rrf_score(places[item_id]), item_id))
    heads = [Column(str(number), right=True) for number in range(1, len(answers) + 1)]
    rows = [
        (
            *(str(places[item_id].get(name, "·")) for name in answers),
            _format_hit(hits[item_id], found_by_all=item_id in shared),
        )
        for item_id in agreed
    ]
    print_table(out, [*heads, Column("memory", wide=True)], rows)


def _rrf_score(ranks: Mapping[str, int]) -> float:
    """Combine a memory's ranks over all answers by reciprocal rank fusion."""
    return sum(1 / (_RRF_K + place) for place in ranks.values())


def _format_hit(hit: Candidate, *, found_by_all: bool) -> Piece:
    text = f"{one_line(hit.marked_text, 120)} [{hit.item.id}]"
    return bold(text) if found_by_all else text


def _agreement_summary(found: Mapping[str, list[str]], shared: set[str]) -> str:
    if len(found) < 2:
        return plural(sum(map(len, found.values())), "memory")
    if len(found) > _MAX_COLUMNS:
        every = {item for ids in found.values() for item in ids}
        return f"found by all: {len(shared)} of {len(every)}; · not found"
    by_profile = ", ".join(
        f"{name} {len([i for i in ids if i not in shared])}" for name, ids in found.items()
    )
    return f"found by all: {len(shared)}; * not found by all: {by_profile}"


_LIMITS = (
    *("k", "max_tokens", "whole", "min_confidence", "min_relevance", "as_of", "turns_before"),
    *("own_session", "deep", "reranker", "context"),
)


def query_options(function: F) -> F:
    """Add the filters and limits of a query, passed as keyword arguments."""
    return filter_options(recall_options(*_LIMITS, "now")(function))


def _build_request(
    text: str, profile: str | None, options: Json, *, steps: bool = False
) -> QueryRequest:
    """Build the query request from the options that were set."""
    given = {name: value for name, value in options.items() if value is not None and value != ()}
    now = given.pop("now", None)
    return QueryRequest(text, profile, given, now, steps)


def _parse_candidate_limit(_: click.Context, __: click.Parameter, value: str) -> int | None:
    """Parse a number of candidates; None means all."""
    if value == "all":
        return None
    if value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    raise click.BadParameter(f"{value!r} is neither a number nor all")


@command(
    "recall",
    examples=[
        'bethink recall "how do I run the tests?"',
        'bethink recall "what did we decide about the database" --kind decision -k 3',
        'bethink recall "deploy key" --explain --trace',
        'bethink recall "rate limit" --as-of 2026-03-01 --json',
        'bethink recall "who rotates the keys?" --reranker overlap',
        "bethink recall --entity module:auth",
        'bethink recall "auth" --profile remind --episode-k 0 --text',
        'bethink recall "which books did both of them read?" --min-relevance 0 --trace',
    ],
)
@click.argument("query", default="")
@recall_options("profile", "offset", "cursor")
@query_options
@option(
    "--translated TEXT",
    "The question in other words or another language, searched with it; may be repeated.",
    multiple=True,
)
@option("--explain", "Show how each score was calculated.")
@option("--trace", "Show every step of the pipeline.")
@option(
    "--trace-candidates N|all",
    "With --trace --json: maximum number of candidates per step.",
    shown="8",
    callback=_parse_candidate_limit,
)
@recall_options("track", "episode_k")
@option("--text as_text", "Print the text for a model, in the profile's sections.")
def recall(
    app: App,
    /,
    query: str,
    profile: str | None,
    *,
    explain: bool,
    trace: bool,
    trace_candidates: int | None,
    translated: tuple[str, ...],
    as_text: bool,
    **options: object,
) -> int:
    """Find the memories that answer a question.

    QUERY is any text; - reads it from standard input. Without one, the filters alone
    select the newest memories. The best match comes first, each with the reasons for its
    rank. An empty answer says why.
    """
    app.profile = profile or None
    text = "\n".join(filter(None, (read_text_argument(query), *translated)))
    request = _build_request(text, app.profile, options, steps=trace)
    return run_query(
        app, "recall", request, explain_scores=explain, candidates=trace_candidates, as_text=as_text
    )


@command(
    "why-not",
    examples=[
        'bethink why-not 0v3h2k9x4m7q1abc "how do I run the tests?"',
        'bethink why-not 1abc "deploy key" --profile siftcoder',
    ],
)
@click.argument("item_id", metavar="ID", shell_complete=complete_ids)
@click.argument("query")
@recall_options("profile")
@query_options
def why_not(app: App, /, item_id: str, query: str, profile: str | None, **options: object) -> None:
    """Explain why a memory was not recalled.

    Follows the memory with this ID through the pipeline of QUERY: the step that dropped
    it, by what margin, and what would have kept it.
    """
    app.profile = profile or None
    request = _build_request(read_text_argument(query), app.profile, options)
    run_query(app, "why-not", request, item_id=item_id)


def answer_why_not(app: App, memory: Memory, request: QueryRequest, *, item_id: str) -> int:
    """Find and print why a memory was not recalled."""
    profile = require_profile(memory, request.profile, "why-not")
    result = memory.why_not(item_id, request.text, profile=profile, **request.keywords)
    if app.json:
        from bethink.render.wire import why_not_json  # only for --json

        app.out.json(why_not_json(result))
    else:
        print_why_not(app.out, result)
    return 0


@command(
    "compare",
    examples=[
        'bethink compare "deploy key"',
        'bethink compare "deploy key" --profiles default,siftcoder',
    ],
)
@click.argument("query")
@option("--profiles A,B,...", "Profiles to compare; default: all built-in ones.")
@query_options
def compare(app: App, /, query: str, profiles: str | None, **options: object) -> int:
    """Run a query with several profiles, side by side.

    Up to three profiles are shown with their texts, more of them by the rank each gives a
    memory. Usage is not recorded, so comparing never changes a later answer.
    """
    names = [name.strip() for name in (profiles or "").split(",") if name.strip()]
    if profiles is not None and not names:
        raise click.UsageError("--profiles contains no name; bethink profiles lists them")
    request = _build_request(read_text_argument(query), None, options)
    return run_query(app, "compare", request, profiles=names)


def answer_comparison(
    app: App, memory: Memory, request: QueryRequest, *, profiles: list[str]
) -> int:
    """Run a query with several profiles, the built-in ones if none are named, and print it."""
    require_profile(memory, None, "compare")
    for name in profiles:
        require_profile(memory, name, "compare")
    shipped = [name for name, file in memory.profiles().items() if file is None]
    answers = memory.compare(request.text, profiles or shipped, **request.keywords)
    if app.json:
        from bethink.render.wire import recall_json  # only for --json

        app.out.json({name: recall_json(answer) for name, answer in answers.items()})
    else:
        print_comparison(app.out, answers)
    return 0 if any(answer.hits for answer in answers.values()) else 1
