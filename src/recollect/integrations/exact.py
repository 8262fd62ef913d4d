"""JSON kept exactly: as text that a store can keep, with its secrets taken out first."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from recollect.errors import BadText, Refused, TooLarge
from recollect.ingest.admit import TEXT_BYTES
from recollect.ingest.redact import redact, redact_draft
from recollect.model import Draft
from recollect.text import unkeepable

DEEPEST = 64
_MOST_PASSES = 8
_SAYING_NOTHING = frozenset(("", "text", "content", "memory", "value", "data"))

OnRedaction = Callable[["Redaction"], None]


class Redaction(NamedTuple):
    """Tells who stored something that secrets were taken out of it, and of which kinds."""

    where: str
    kinds: tuple[str, ...]


class Exact(NamedTuple):
    """A value as it will be kept and as the text that says so; ``redacted`` are the kinds
    of secrets that a mark stands in for."""

    value: Any
    text: str
    redacted: tuple[str, ...] = ()


def exactly(value: Any, what: str = "the value", *, most_bytes: int = TEXT_BYTES) -> Exact:
    """The value as text. Raises Refused where it is not JSON, so that it would come back
    as something else than it went in, and TooLarge where it is longer than that."""
    check_json(value, what)
    check_size(_text(value), what, most_bytes)
    kinds: dict[str, None] = {}
    for _ in range(_MOST_PASSES):
        value, found = _without_secrets(value)
        text = _text(value)
        # A secret may show only beside its name, which the text has and the parts have not.
        cleaned = redact(text)
        kinds.update(dict.fromkeys((*found, *cleaned.kinds)))
        if not cleaned.kinds:
            return Exact(value, text, tuple(kinds))
        try:
            value = json.loads(cleaned.text)
        except ValueError as error:
            raise _entangled(what) from error
    raise _entangled(what)


def _entangled(what: str) -> Refused:
    return Refused(
        f"{what} holds a secret that cannot be taken out of it",
        remedy="store it without the secret",
    )


def _without_secrets(value: Any) -> tuple[Any, tuple[str, ...]]:
    draft, kinds = redact_draft(Draft("json", metadata={"value": value}))
    return (draft.metadata["value"], kinds) if kinds else (value, ())


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_json(value: Any, what: str, depth: int = 1) -> None:
    """Refuses what is not JSON, or too deep to be walked."""
    if depth > DEEPEST:
        raise TooLarge(what, limit=DEEPEST, actual=depth, unit="levels deep")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise Refused(f"{what} has a key {key!r:.40}, which is no text: not JSON")
            _check_text(key, what)
            check_json(inner, what, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            check_json(inner, what, depth + 1)
    elif isinstance(value, str):
        _check_text(value, what)
    else:
        _check_scalar(value, what)


def _check_scalar(value: Any, what: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise Refused(f"{what} holds {value}, which is no JSON number")
    if isinstance(value, int) and value.bit_length() > 4096:
        raise Refused(f"{what} holds a whole number of more than 4,096 bits")
    if not (value is None or isinstance(value, bool | int | float)):
        raise Refused(f"{what} holds a {type(value).__name__}, which is not JSON")


def _check_text(text: str, what: str) -> None:
    # NUL is written out by JSON; half a pair of surrogates is no character at all.
    bad = unkeepable(text.replace("\x00", ""))
    if bad is not None:
        raise BadText(f"{what} holds a {bad[1]}", remedy="remove it; it cannot be stored")


def check_size(text: str, what: str, most_bytes: int = TEXT_BYTES) -> None:
    """Refuses what is longer than can be kept, by the name its writer knows it by."""
    size = len(text.encode())
    if size > most_bytes:
        raise TooLarge(what, limit=most_bytes, actual=size)


def told(value: Any) -> str:
    """What a value says, for reading and finding: its texts and numbers, a line each, with
    their names where these say something. Never longer than its JSON."""
    leaves = list(_leaves("", value))
    if len(leaves) == 1:
        return leaves[0][1]
    return "\n".join(
        leaf if name.lower() in _SAYING_NOTHING else f"{name}: {leaf}" for name, leaf in leaves
    )


def _leaves(name: str, value: Any) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [leaf for key, inner in value.items() for leaf in _leaves(key, inner)]
    if isinstance(value, list | tuple):
        return [leaf for inner in value for leaf in _leaves(name, inner)]
    if value is None or value == "":
        return []
    return [(name, value if isinstance(value, str) else json.dumps(value))]
