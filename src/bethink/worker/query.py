"""A question as the command line asks it, here or through the worker."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple

_NO_OPTIONS: Mapping[str, Any] = {}


class QueryRequest(NamedTuple):
    """A question.

    ``options`` are JSON values that the facade takes by these names; ``steps`` includes the
    trace steps, which are long. ``id`` is given to a question that may be asked twice, since
    an answer can be lost: its use is recorded once.
    """

    text: str
    profile: str | None = None
    options: Mapping[str, Any] = _NO_OPTIONS
    now: datetime | None = None
    steps: bool = False
    id: str = ""

    @property
    def keywords(self) -> Json:
        """Keyword arguments for the facade."""
        keywords = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.options.items()
        }
        return keywords if self.now is None else {**keywords, "now": self.now}

    def to_json(self) -> Json:
        return self._asdict() | {"now": self.now.isoformat() if self.now else None}

    @classmethod
    def from_json(cls, fields: Json) -> QueryRequest:
        """Read a question, which a program of the same version has written."""
        return cls(**fields | {"now": fields["now"] and datetime.fromisoformat(fields["now"])})
