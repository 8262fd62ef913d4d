"""Trouble of the server's own, as somebody over a network is told of it: without paths."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from recollect.access.rights import OWNER, Principal
from recollect.errors import (
    BadProfile,
    BadSetting,
    MissingExtra,
    ModelError,
    RecollectError,
    StoreBusy,
    StoreError,
)

_log = logging.getLogger("recollect")
_OURS = (StoreError, BadSetting, BadProfile, MissingExtra, ModelError)


@contextmanager
def masked(principal: Principal) -> Iterator[None]:
    """Tells the owner everything, and others that there is trouble and of which kind."""
    try:
        yield
    except _OURS as error:
        if principal is OWNER:
            raise
        _log.error("%s: %s", type(error).__name__, error.message)
        raise _told(error) from error


def _told(error: RecollectError) -> RecollectError:
    if isinstance(error, StoreBusy):
        return StoreBusy("others are writing to the store", remedy="try again")
    if isinstance(error, StoreError):
        return StoreError("the store cannot be used", remedy="recollect doctor, on the server")
    if isinstance(error, ModelError):
        return ModelError("a model failed", remedy="try again")
    if isinstance(error, BadProfile):
        return BadProfile("that profile cannot be used", remedy="another profile")
    return BadSetting("the server is not set up for this", remedy="look at its log")
