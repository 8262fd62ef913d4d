"""Ciphers and pictures inside JSON, written so that nothing in them looks like a secret.

What a provider has encrypted must come back to the letter, or it is turned away. In some
thousand random letters there is now and then a run that reads like a key; cut into short
pieces it does not, and nobody could read a secret out of a cipher anyway.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MARK = "recollect:opaque"
_NAMES = frozenset(("encrypted_content", "signature", "thought_signature", "file_data", "b64_json"))
_PLAIN_NAMES = frozenset(("data", "result"))  # also names of ordinary texts
_BLOB = re.compile(r"(?:data:[\w.+/;=-]{0,100};base64,)?[A-Za-z0-9+/_-]+={0,2}")
_CIPHER = "gAAAAA"  # how what Fernet has encrypted begins, whatever its field is called
_SHORTEST = 64
_SHORTEST_PLAIN = 512
_PIECE = 8


def in_pieces(value: Any, name: str = "") -> Any:
    """The value with what is opaque in it cut into pieces."""
    if isinstance(value, str):
        if not _is_opaque(name, value):
            return value
        return {MARK: " ".join(value[at : at + _PIECE] for at in range(0, len(value), _PIECE))}
    if isinstance(value, Mapping):
        inside = {key: in_pieces(inner, key) for key, inner in value.items()}
        return {MARK: inside} if MARK in inside else inside
    if isinstance(value, list | tuple):
        return [in_pieces(inner, name) for inner in value]
    return value


def whole(value: Any) -> Any:
    """The value as it was."""
    if isinstance(value, Mapping):
        if set(value) == {MARK}:
            inside = value[MARK]
            if isinstance(inside, str):
                return inside.replace(" ", "")
            return {key: whole(inner) for key, inner in inside.items()}
        return {key: whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole(inner) for inner in value]
    return value


def _is_opaque(name: str, value: str) -> bool:
    if name in _NAMES or value.startswith(("data:", _CIPHER)):
        least = _SHORTEST
    elif name in _PLAIN_NAMES:
        least = _SHORTEST_PLAIN
    else:
        return False
    return len(value) >= least and _BLOB.fullmatch(value) is not None
