"""JSON stored exactly, with secrets redacted and opaque blobs protected from redaction.

What a provider has encrypted must come back unchanged, or it is rejected. In a few thousand
random characters there is now and then a run that looks like a key; split into short pieces
it does not, and a ciphertext reveals no secret anyway.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from bethink.core.characters import find_unstorable
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, Refused, TooLarge
from bethink.ingest.admission import MAX_TEXT_BYTES
from bethink.ingest.redaction import redact, redact_draft
from bethink.model import Draft

OPAQUE_KEY = "bethink:opaque"
_OPAQUE_FIELDS = frozenset(
    ("encrypted_content", "signature", "thought_signature", "file_data", "b64_json")
)
_AMBIGUOUS_FIELDS = frozenset(("data", "result"))  # also common names of ordinary text fields
_BLOB = re.compile(r"(?:data:[\w.+/;=-]{0,100};base64,)?[A-Za-z0-9+/_-]+={0,2}")
_FERNET_PREFIX = "gAAAAA"  # prefix of Fernet ciphertext
_MIN_LENGTH = 64
_MIN_AMBIGUOUS_LENGTH = 512
_PIECE_CHARS = 7  # shorter than what redaction takes for a password near other words


def encode_opaque(value: object, name: str = "") -> object:
    """Return the value with its opaque strings split into pieces."""
    if isinstance(value, str):
        if not _is_opaque(name, value):
            return value
        starts = range(0, len(value), _PIECE_CHARS)
        return {OPAQUE_KEY: " ".join(value[at : at + _PIECE_CHARS] for at in starts)}
    if isinstance(value, Mapping):
        inside = {key: encode_opaque(inner, key) for key, inner in value.items()}
        return {OPAQUE_KEY: inside} if OPAQUE_KEY in inside else inside
    if isinstance(value, list | tuple):
        return [encode_opaque(inner, name) for inner in value]
    return value


def decode_opaque(value: object) -> Any:
    """Return the original of an encoded value."""
    if isinstance(value, Mapping):
        if set(value) == {OPAQUE_KEY}:
            inside = value[OPAQUE_KEY]
            if isinstance(inside, str):
                return inside.replace(" ", "")
            return {key: decode_opaque(inner) for key, inner in inside.items()}
        return {key: decode_opaque(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [decode_opaque(inner) for inner in value]
    return value


def _is_opaque(name: str, value: str) -> bool:
    if name in _OPAQUE_FIELDS or value.startswith(("data:", _FERNET_PREFIX)):
        least = _MIN_LENGTH
    elif name in _AMBIGUOUS_FIELDS:
        least = _MIN_AMBIGUOUS_LENGTH
    else:
        return False
    return len(value) >= least and _BLOB.fullmatch(value) is not None


MAX_DEPTH = 64
_MAX_PASSES = 8
_GENERIC_NAMES = frozenset(("", "text", "content", "memory", "value", "data"))

OnRedaction = Callable[["Redaction"], None]


class Redaction(NamedTuple):
    """Notification that secrets were redacted from a stored value, with their kinds."""

    where: str
    kinds: tuple[str, ...]


class ExactJson(NamedTuple):
    """A value as it will be stored, its JSON text, and the kinds of redacted secrets."""

    value: Any
    text: str
    redacted: tuple[str, ...] = ()


def to_exact_json(
    value: object, what: str = "the value", *, max_bytes: int = MAX_TEXT_BYTES
) -> ExactJson:
    """Return a value as JSON text with its secrets redacted.

    Raises Refused if it is not JSON, so that it would not come back as it was, and TooLarge if
    it is too long.
    """
    check_json(value, what)
    check_size(_dump(value), what, max_bytes)
    kinds: dict[str, None] = {}
    for _ in range(_MAX_PASSES):
        draft, found = redact_draft(Draft("json", metadata={"value": value}))
        value = draft.metadata["value"] if found else value
        text = _dump(value)
        # Some secrets are recognised only with their name, which the text has but the parts lack.
        cleaned = redact(text)
        kinds.update(dict.fromkeys((*found, *cleaned.kinds)))
        if not cleaned.kinds:
            return ExactJson(value, text, tuple(kinds))
        try:
            value = json.loads(cleaned.text)
        except ValueError:
            break
    problem = f"{what} contains a secret that cannot be removed"
    raise Refused(problem, remedy="store it without the secret")


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_json(value: object, what: str, depth: int = 1) -> None:
    """Raise Refused if a value is not JSON, or TooLarge if it is nested too deeply."""
    if depth > MAX_DEPTH:
        raise TooLarge(what, limit=MAX_DEPTH, actual=depth, unit="levels deep")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise Refused(
                    f"{what} has a key {key!r:.40}, which is not a string, so it is not JSON"
                )
            _check_text(key, what)
            check_json(inner, what, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            check_json(inner, what, depth + 1)
    elif isinstance(value, str):
        _check_text(value, what)
    else:
        _check_scalar(value, what)


def _check_scalar(value: object, what: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise Refused(f"{what} contains {value}, which is not a JSON number")
    if isinstance(value, int) and value.bit_length() > 4096:
        raise Refused(f"{what} contains an integer of more than 4,096 bits")
    if not (value is None or isinstance(value, bool | int | float)):
        raise Refused(f"{what} contains a {type(value).__name__}, which is not JSON")


def _check_text(text: str, what: str) -> None:
    # JSON escapes NUL; a lone surrogate is not a valid character.
    bad = find_unstorable(text.replace("\x00", ""))
    if bad is not None:
        raise BadText(f"{what} contains a {bad[1]}", remedy="remove it; it cannot be stored")


def check_size(text: str, what: str, max_bytes: int = MAX_TEXT_BYTES) -> None:
    """Raise TooLarge if a text is too long, naming it as its writer knows it."""
    size = len(text.encode())
    if size > max_bytes:
        raise TooLarge(what, limit=max_bytes, actual=size)


def flatten_text(value: object) -> str:
    """Return a value's texts and numbers, one a line, for search.

    Names are included unless they are generic. The result is never longer than the JSON.
    """
    leaves = list(_leaves("", value))
    if len(leaves) == 1:
        return leaves[0][1]
    return "\n".join(
        leaf if name.lower() in _GENERIC_NAMES else f"{name}: {leaf}" for name, leaf in leaves
    )


def _leaves(name: str, value: object) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [leaf for key, inner in value.items() for leaf in _leaves(key, inner)]
    if isinstance(value, list | tuple):
        return [leaf for inner in value for leaf in _leaves(name, inner)]
    if value is None or value == "":
        return []
    return [(name, value if isinstance(value, str) else json.dumps(value))]
