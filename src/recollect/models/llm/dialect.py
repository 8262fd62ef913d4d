"""How one kind of server is asked, and how its answers are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from recollect.models.exchange import Url


class Asked(NamedTuple):
    """What a model is asked, before a server's protocol gives it its form.

    ``schema`` is the whole one, ``outline`` the same without limits.
    """

    model: str
    task: str
    system: str
    user: str
    schema: Mapping[str, Any]
    outline: Mapping[str, Any]
    output_tokens: int
    input_tokens: int

    def spelled_out(self) -> Asked:
        """The same with the schema in the text, for servers that cannot be told of it."""
        schema = json.dumps(self.schema, ensure_ascii=False)
        told = f"Answer with one JSON object of this JSON Schema and nothing else:\n{schema}"
        return self._replace(system=f"{self.system}\n\n{told}")


class Said(NamedTuple):
    """What came back: a text, or an object where the protocol carries one.

    Tokens are None where the server did not count them.
    """

    content: str | dict[str, Any]
    is_cut: bool = False
    is_refused: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None


class Dialect(NamedTuple):
    """What one kind of server wants to be asked, and how its answer is read.

    ``forms`` are its ways of asking for JSON, the strictest first; a server that does not
    know one is asked in the next. ``headers`` is called for every request, so that a key
    is kept nowhere else. ``read`` fails as Python does on what is no answer.
    """

    provider: str
    url: Url
    headers: Callable[[], Mapping[str, str]]
    forms: tuple[Callable[[Asked], dict[str, Any]], ...]
    read: Callable[[Any], Said]
    unknown_model: str = ""
    no_entry: str = ""

    @property
    def who(self) -> str:
        """The server, in words."""
        return f"{self.provider} at {self.url.host}"


def counted(usage: Any, *names: str) -> int | None:
    """The sum of what a server counted under these names; None where it did not."""
    found = [usage[name] for name in names if usage.get(name) is not None]
    sane = all(type(count) is int and 0 <= count < 1 << 32 for count in found)
    return sum(found) if found and sane else None
