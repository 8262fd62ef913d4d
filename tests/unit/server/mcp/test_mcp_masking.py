"""Trouble of the server's own: the owner hears all of it, others its kind."""

from __future__ import annotations

import pytest

from bethink.access.policy import LOOPBACK, OWNER
from bethink.errors import (
    BadProfile,
    BadSetting,
    BethinkError,
    MissingExtra,
    ModelError,
    NotFound,
    SchemaTooNew,
    StoreBusy,
    StoreDamaged,
)
from bethink.server.tools.calls import hide_internal_errors
from rows import each_row

PLACE = "somewhere/private.db"


@each_row(
    "error",
    [
        StoreBusy(f"{PLACE} is busy"),
        StoreDamaged(f"{PLACE} is damaged"),
        SchemaTooNew(f"{PLACE} is newer"),
        ModelError(f"the model in {PLACE} failed"),
        BadSetting(f"{PLACE} cannot be read"),
        BadProfile(f"{PLACE}: not UTF-8 text"),
        MissingExtra(PLACE, extra="rerank"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_others_are_not_told_where(error: BethinkError) -> None:
    """Nor anything else that only the owner can do something about."""
    with pytest.raises(BethinkError) as told, hide_internal_errors(LOOPBACK):
        raise error
    with pytest.raises(type(error), match=PLACE), hide_internal_errors(OWNER):
        raise error

    assert PLACE not in told.value.message + told.value.remedy
    assert isinstance(told.value, StoreBusy) == isinstance(error, StoreBusy)


def test_what_the_caller_did_wrong_is_told_as_it_is() -> None:
    """To everybody."""
    with pytest.raises(NotFound, match="no memory 'x'"), hide_internal_errors(LOOPBACK):
        raise NotFound("there is no memory 'x'")
