"""Paths under /memories: each in one form, and nothing that could lead out of there.

There is no folder behind them that one could leave. All the same what would leave it in a
file system is refused, however it is written: a path may be used elsewhere as well.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any
from urllib.parse import unquote

from recollect.errors import Refused
from recollect.ingest.redact import redact
from recollect.text import unkeepable

ROOT = "/memories"
_LONGEST = 900
_MOST_ENCODED = 8
_HIDING = re.compile(r"[\x00-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\\]")


def normal(path: Any) -> str:
    """A path in its one form: no doubled or trailing slash, no ``.``, composed letters.
    Raises Refused, in the words of the memory tool, where it leads elsewhere."""
    if not isinstance(path, str):
        raise Refused(f"A path is a text, not {path!r:.40}")
    if not path.startswith(ROOT) or path[len(ROOT) :][:1] not in ("", "/"):
        raise Refused(f"Path must start with /memories, got: {path}")
    if len(path) > _LONGEST:
        raise Refused(f"Path is longer than {_LONGEST} characters")
    if unkeepable(path) or _HIDING.search(path) or redact(path).kinds:
        raise Refused(f"Path {path!r} holds something that a path must not hold")
    if any(_climbs(form) for form in _readings(path)):
        raise Refused(f"Path {path} would escape /memories directory")
    parts = [
        part for part in unicodedata.normalize("NFC", path).split("/") if part not in ("", ".")
    ]
    return "/" + "/".join(parts)


def _readings(path: str) -> list[str]:
    """A path as others might read it: decoded, however often it was encoded, and with its
    look-alikes made plain."""
    forms = [path]
    for _ in range(_MOST_ENCODED):
        decoded = unquote(forms[-1])
        if decoded == forms[-1]:
            return [form for each in forms for form in (each, unicodedata.normalize("NFKC", each))]
        forms.append(decoded)
    raise Refused(f"Path {path} is encoded too often")


def _climbs(path: str) -> bool:
    return any(part.strip() == ".." or "\x00" in part for part in re.split(r"[/\\]", path))
