"""Votes on memories that hooks gave, kept on this machine: at most one for each session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from bethink.config.settings import Settings
from bethink.config.spaces import data_dir
from bethink.core.atomic_write import atomic_replace
from bethink.lang.dates import DAY_S
from bethink.retrieval.context import Votes

_KEPT_S = 365 * DAY_S  # six half-lives


def read_votes(settings: Settings, space: str) -> Votes:
    """Return the votes on the memories of a space; none where the setting is off."""
    with suppress(OSError):
        if settings.feedback:
            path = _path(settings, space)
            return _read(path, path.stat().st_mtime_ns)
    return {}


def keep_votes(
    settings: Settings, space: str, session: str, given: Mapping[str, float], now: float
) -> None:
    """Add the votes of a session, or change them; votes of long ago are dropped."""
    path = _path(settings, space)
    kept = {
        item: {one: vote for one, vote in known.items() if now - vote[1] < _KEPT_S}
        for item, known in _read.__wrapped__(path, 0).items()
    }
    for item, value in given.items():
        votes = kept.setdefault(item, {})
        votes[session] = (value, votes.get(session, (value, now))[1])
    atomic_replace(path, json.dumps(kept).encode())


def _path(settings: Settings, space: str) -> Path:
    return data_dir(settings) / space / "votes.json"


@lru_cache(maxsize=8)
def _read(path: Path, _version: int) -> Votes:
    # A file that is missing or damaged holds no vote.
    with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {
            item: {one: (float(value), float(at)) for one, (value, at) in known.items()}
            for item, known in json.loads(path.read_bytes()).items()
        }
    return {}
