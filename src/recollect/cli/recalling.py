"""`recall`, `why-not` and `compare`: asking, and asking why."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from recollect.cli.answering import answered, named
from recollect.cli.answers import print_answer, print_trace, print_why_not
from recollect.cli.app import App
from recollect.cli.options import (
    command,
    filter_options,
    filters_of,
    json_object,
    pass_app,
    read_moment,
    text_or_stdin,
)
from recollect.explain import WhyNot

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.model import Recall
    from recollect.worker.jobs import Asked

F = TypeVar("F", bound=Callable[..., Any])


def _read_context(_: click.Context, __: click.Parameter, value: str | None) -> Any:
    return None if value is None else json_object(value, "--context")


def asking_options(function: F) -> F:
    """Limits and moments of a question; they arrive as keyword arguments."""
    decorators = [
        click.option("-k", "--limit", "k", type=int, metavar="N", help="At most so many memories."),
        click.option("--max-tokens", type=int, metavar="N", help="At most so many tokens."),
        click.option("--as-of", metavar="TIME", help="As it was known at that moment."),
        click.option(
            "--deep",
            is_flag=True,
            help="Judge the first answer; where it is not enough, ask on and look wider.",
        ),
        click.option(
            "--reranker",
            metavar="NAME",
            help="What reads the best again: overlap, cross-encoder, an address, none.",
        ),
        click.option(
            "--context",
            callback=_read_context,
            metavar="JSON",
            help='What is going on: {"hour": 9, "weekday": "monday", "topic": "auth"}.',
        ),
        click.option(
            "--now", callback=read_moment, metavar="TIME", help="Ask as if it were that moment."
        ),
    ]
    for decorate in reversed(decorators):
        function = decorate(function)
    return filter_options(function)


def _asked(text: str, profile: str | None, given: dict[str, Any], *, steps: bool = False) -> Asked:
    """The question, with the options that were given."""
    from recollect.worker.jobs import Asked  # help does without

    limits = {
        name: value
        for name, value in given.items()
        if not name.startswith("where_") and value is not None
    }
    now = limits.pop("now", None)
    return Asked(text, profile, limits | filters_of(given), now, steps)


def _how_many(_: click.Context, __: click.Parameter, value: str) -> int | None:
    """A number of candidates; None where all are wanted."""
    if value == "all":
        return None
    if value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    raise click.BadParameter(f"{value!r} is neither a number nor all")


@command(
    "recall",
    examples=[
        'recollect recall "how do I run the tests?"',
        'recollect recall "what did we decide about the database" --kind decision -k 3',
        'recollect recall "deploy key" --explain --trace',
        'recollect recall "rate limit" --as-of 2026-03-01 --json',
        'recollect recall "who rotates the keys?" --reranker overlap',
        "recollect recall --entity module:auth",
        'recollect recall "auth" --profile remind --episode-k 0 --text',
        'recollect recall "which books did both of them read?" --deep --trace',
    ],
)
@click.argument("query", default="")
@click.option("--profile", metavar="NAME", help="How to recall; see recollect profiles.")
@click.option("--offset", type=int, metavar="N", help="Leave out the first so many.")
@click.option("--cursor", metavar="TEXT", help="The next page of an earlier answer.")
@asking_options
@click.option("--explain", is_flag=True, help="With the arithmetic of every score.")
@click.option("--trace", is_flag=True, help="With every step of the walk.")
@click.option(
    "--trace-candidates",
    metavar="N|all",
    callback=_how_many,
    default="8",
    show_default=True,
    help="With --trace --json: so many candidates of each step.",
)
@click.option("--track/--no-track", default=None, help="Note what was returned as used, or not.")
@click.option(
    "--episode-k",
    type=int,
    metavar="N",
    help="At most so many verbatim episodes (level raw), apart from -k; 0 for none.",
)
@click.option(
    "--text",
    "as_text",
    is_flag=True,
    help="As the text that a model is given, in the profile's sections.",
)
@pass_app
def recall(
    app: App,
    /,
    query: str,
    profile: str | None,
    *,
    explain: bool,
    trace: bool,
    trace_candidates: int | None,
    as_text: bool,
    **given: Any,
) -> int:
    """Find what a question calls to mind.

    QUERY is any text; - reads it from standard input. Without one, filters alone find
    the newest they leave. The best comes first, each with the reasons for its place.
    An answer that is empty says why.
    """
    from recollect.worker.jobs import Answered, recall  # help does without

    app.profile = profile or None
    asked = _asked(text_or_stdin(query), app.profile, given, steps=trace)
    answer, sections = answered(app, "recall", asked, Answered, lambda own: recall(own, asked))
    if app.json:
        from recollect.wire import recall_json  # plain output does without

        app.out.json(recall_json(answer, trace=trace, candidates=trace_candidates))
    elif as_text:
        from recollect.present import present  # the other outputs do without

        app.out.raw(present(answer, sections))
    else:
        print_answer(app, answer, with_arithmetic=explain)
    if trace and not app.json:
        print_trace(app.out, answer)
    return 0 if answer.hits else 1


@command(
    "why-not",
    examples=[
        'recollect why-not 0v3h2k9x4m7q1abc "how do I run the tests?"',
        'recollect why-not 1abc "deploy key" --profile siftcoder',
    ],
)
@click.argument("item_id", metavar="ID")
@click.argument("query")
@click.option("--profile", metavar="NAME", help="How to recall; see recollect profiles.")
@asking_options
@pass_app
def why_not(app: App, /, item_id: str, query: str, profile: str | None, **given: Any) -> None:
    """Say why a memory was not recalled.

    Follows the memory with this ID through the walk that QUERY takes: the step at
    which it fell out, by how much, and what would have brought it in.
    """
    from recollect.worker.jobs import why_not  # help does without

    app.profile = profile or None
    asked = _asked(text_or_stdin(query), app.profile, given)
    result = answered(
        app, "why-not", asked, WhyNot, lambda own: why_not(own, asked, item_id), id=item_id
    )
    if app.json:
        from recollect.wire import why_not_json  # plain output does without

        app.out.json(why_not_json(result))
    else:
        print_why_not(app.out, result)


def _compared(app: App, asked: Asked, names: list[str]) -> tuple[Recall, ...]:
    from recollect.worker.jobs import Compared, compare  # help does without

    def here(own: Memory) -> Compared:
        for name in names:
            named(own, name)
        return compare(own, asked, tuple(names))

    return answered(app, "compare", asked, Compared, here, profiles=names).answers


@command(
    "compare",
    examples=[
        'recollect compare "deploy key"',
        'recollect compare "deploy key" --profiles default,siftcoder',
    ],
)
@click.argument("query")
@click.option("--profiles", metavar="A,B,...",
              help="Which profiles to ask; all that come with Recollect unless told.")  # fmt: skip
@asking_options
@pass_app
def compare(app: App, /, query: str, profiles: str | None, **given: Any) -> int:
    """Ask several profiles, side by side.

    Up to three are shown with their texts, more of them by the place each gives a
    memory. Nothing is noted as used, so comparing never changes a later answer.
    """
    names = [name.strip() for name in (profiles or "").split(",") if name.strip()]
    if profiles is not None and not names:
        raise click.UsageError("--profiles names no profile", click.get_current_context())
    asked = _asked(text_or_stdin(query), None, given)
    answers = {answer.profile: answer for answer in _compared(app, asked, names)}
    if app.json:
        from recollect.wire import recall_json  # plain output does without

        app.out.json({name: recall_json(answer) for name, answer in answers.items()})
    else:
        from recollect.cli.comparing import print_comparison  # the other commands do without

        print_comparison(app.out, answers)
    return 0 if any(answer.hits for answer in answers.values()) else 1
