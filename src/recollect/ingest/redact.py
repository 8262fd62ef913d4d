"""Takes secrets out of what is about to be remembered, and says of which kinds they were."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from recollect.ingest.randomness import is_password, is_secret
from recollect.ingest.secret_kinds import SECRET_KINDS
from recollect.model import Draft

_LOWER = tuple(
    (word, i) for i, kind in enumerate(SECRET_KINDS) for word in kind.words if word.islower()
)
_AS_WRITTEN = tuple(
    (word, i) for i, kind in enumerate(SECRET_KINDS) for word in kind.words if not word.islower()
)
_NEXT_FIELD = re.compile(r"[,;&](?=[\w .\-]{1,40}=)|[,;]$")
_QUOTES = (b'"', b"'", b"`")
_TRAILING = ".,;:!?)]}>\\"
_PASSWORD_NAME = re.compile(r"pass(?:w(?:or)?d|phrase|code|wort)$|pwd$", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"(?:secret|token|api[_\-. ]?key|(?:access|private|auth|account)[_\-]?key|credentials?)$",
    re.IGNORECASE,
)


class Redacted(NamedTuple):
    """A text without its secrets, and their kinds in order of appearance."""

    text: str
    kinds: tuple[str, ...] = ()


def redact(text: str) -> Redacted:
    """Puts ``[redacted:kind]`` where a secret stood; the rest stays as it was."""
    candidates = _candidates(text)
    if not candidates:
        return Redacted(text)
    raw = text.encode()
    taken: list[tuple[int, int, str]] = []
    for i in candidates:
        _claim(i, raw, taken)
    if not taken:
        return Redacted(text)
    pieces, at = [], 0
    for start, end, name in taken:
        pieces += [raw[at:start], f"[redacted:{name}]".encode()]
        at = end
    kinds = tuple(dict.fromkeys(name for _, _, name in taken))
    return Redacted(b"".join([*pieces, raw[at:]]).decode(), kinds)


def _candidates(text: str) -> list[int]:
    """The kinds whose words the text holds."""
    lower = text.lower()
    found = {i for word, i in _LOWER if word in lower}
    found.update(i for word, i in _AS_WRITTEN if word in text)
    return sorted(found)


@cache
def _compiled(i: int) -> Any:
    import re2  # only texts that may hold a secret pay for loading it

    return re2.compile(SECRET_KINDS[i].pattern.encode())


def _claim(i: int, raw: bytes, taken: list[tuple[int, int, str]]) -> None:
    """Adds the secrets of one kind to those taken, in order, where nothing is taken yet."""
    kind = SECRET_KINDS[i]
    for match in _compiled(i).finditer(raw):
        group = match.lastindex or 0
        start, end = match.span(group)
        place = bisect_left(taken, (start,))
        before_is_free = place == 0 or taken[place - 1][1] <= start
        if not before_is_free or (place < len(taken) and end > taken[place][0]):
            continue
        value = raw[start:end].decode()
        if group and raw[end : end + 1] not in _QUOTES:
            value = _trimmed(value)
        if kind.check(value):
            taken.insert(place, (start, start + len(value.encode()), kind.name))


def _trimmed(value: str) -> str:
    """Without the next field of the same line and without the sentence's punctuation."""
    value = _NEXT_FIELD.split(value, maxsplit=1)[0]
    return value.rstrip(_TRAILING) if len(value) > 6 else value


_WORDED = ("text", "caption", "original", "speaker", "topic", "source")


def redact_draft(draft: Draft) -> tuple[Draft, tuple[str, ...]]:
    """A draft without secrets in any of its words, and their kinds."""
    # One look at everything at once: nearly no draft goes further.
    written = [getattr(draft, name) or "" for name in _WORDED]
    everything = "\n".join((*written, *draft.tags, *draft.entities))
    if not draft.metadata and not _candidates(everything):
        return draft, ()
    kinds: dict[str, None] = {}

    def clean(text: str) -> str:
        cleaned = redact(text)
        kinds.update(dict.fromkeys(cleaned.kinds))
        return cleaned.text

    changes: dict[str, Any] = {
        name: clean(value) for name, value in zip(_WORDED, written, strict=True) if value
    }
    changes["tags"] = tuple(map(clean, draft.tags))
    changes["entities"] = tuple(map(clean, draft.entities))
    changes["metadata"] = _clean_json(draft.metadata, clean, kinds)
    return (draft._replace(**changes) if kinds else draft), tuple(kinds)


def _clean_json(value: Any, clean: Callable[[str], str], kinds: dict[str, None]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {
            clean(name): _clean_field(name, inner, kinds) or _clean_json(inner, clean, kinds)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_clean_json(inner, clean, kinds) for inner in value]
    return value


def _clean_field(name: str, value: object, kinds: dict[str, None]) -> str | None:
    """What replaces a value that only its own name gives away."""
    if not isinstance(value, str):
        return None
    if _PASSWORD_NAME.search(name) and is_password(value):
        kind = "password"
    elif _SECRET_NAME.search(name) and is_secret(value):
        kind = "secret"
    else:
        return None
    kinds[kind] = None
    return f"[redacted:{kind}]"
