"""A question as the command line asks it, here or through the worker."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused

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
    def keywords(self) -> dict[str, Any]:
        """Keyword arguments for the facade."""
        keywords = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.options.items()
        }
        return keywords if self.now is None else {**keywords, "now": self.now}

    def to_json(self) -> Json:
        return self._asdict() | {"now": self.now.isoformat() if self.now else None}

    @classmethod
    def from_json(cls, value: object) -> QueryRequest:
        """Read a question that was received; refuse anything else."""
        fields = value if isinstance(value, dict) else {}
        kinds = {name: type(fields.get(name)) for name in cls._fields}
        optional = {"profile": str, "now": str}
        if (
            fields.keys() != kinds.keys()
            or not all(kinds[name] in (kind, type(None)) for name, kind in optional.items())
            or [kinds[name] for name in ("text", "options", "steps", "id")]
            != [str, dict, bool, str]
        ):
            raise Refused("the question is not valid")
        try:
            now = datetime.fromisoformat(fields["now"]) if fields["now"] else None
        except ValueError as error:
            raise Refused("the time of the question is not valid") from error
        return cls(**fields | {"now": now})
