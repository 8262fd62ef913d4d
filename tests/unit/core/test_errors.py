"""Errors of the package as values: they can be sent to another process."""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Iterator

from bethink.errors import (
    BethinkError,
    Forbidden,
    MissingExtra,
    Refused,
    SomeRefused,
    TooLarge,
    UntrustedSpace,
)
from rows import each_row

SPECIAL: dict[type[BethinkError], BethinkError] = {
    TooLarge: TooLarge("the text", limit=10, actual=12, unit="characters"),
    Forbidden: Forbidden("not allowed", scope="write", remedy="use another token"),
    SomeRefused: SomeRefused([Refused("it breaks a rule", remedy="try again")]),
    MissingExtra: MissingExtra("the server", extra="server"),
    UntrustedSpace: UntrustedSpace(
        "not trusted", remedy="trust the project", project="/a/project", space="work"
    ),
}


def error_classes(base: type[BethinkError]) -> Iterator[type[BethinkError]]:
    yield base
    for derived in base.__subclasses__():
        if derived.__module__ == "bethink.errors":
            yield from error_classes(derived)


@each_row("kind", [*error_classes(BethinkError)], ids=lambda kind: kind.__name__)
def test_every_error_survives_pickling_and_copying(kind: type[BethinkError]) -> None:
    """With its class, its message and all it says, such as the limit or the scope."""
    error = SPECIAL.get(kind) or kind("it failed", remedy="try again")

    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is kind
        assert (str(again), again.args) == (str(error), error.args)
        assert repr(vars(again)) == repr(vars(error))


def test_an_error_that_nobody_catches_shows_its_remedy() -> None:
    """A program's traceback ends with what to do; the message itself stays one sentence."""
    error = MissingExtra("LangGraph", extra="langgraph")

    shown = traceback.format_exception(error)

    assert str(error) == error.message
    assert shown[-1] == f"try: {error.remedy}\n"
    assert traceback.format_exception(BethinkError("it failed"))[-1].endswith("it failed\n")
