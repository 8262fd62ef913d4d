"""Detect and redact secrets in memories, and report their kinds.

Every pattern runs in RE2, in time linear in the text, and only on texts that hold one of
its keywords: all of them are searched first, at once, because hardly any memory holds one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import cast

from bethink.core.json_values import Json
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.ingest.secret_kinds import SECRET_KINDS
from bethink.ingest.secret_values import is_password, is_secret, trim_value
from bethink.model import Draft
from bethink.model.fields import GIVEN_FIELDS, field_names

# Kinds without a keyword, and what at least one of them needs.
_CARD_KINDS = tuple(i for i, kind in enumerate(SECRET_KINDS) if not kind.words and not kind.long)
_CARD_SHAPE = r"[3-6][0-9]{3}[ -]?[0-9]{4,6}[ -]?[0-9]{4}"
_CARD = lazy_pattern(_CARD_SHAPE)
_TOKEN_KINDS = tuple(i for i, kind in enumerate(SECRET_KINDS) if not kind.words and kind.long)
_TOKEN_SHAPE = lazy_pattern(
    r"[_\-.][A-Za-z0-9_\-]{36}|[MNO][\w-]{22,27}\.[\w-]{6}\.|[5KL][A-Za-z0-9]{50}"
)
_LONG_WORD = 20  # characters
_QUOTES = (b'"', b"'", b"`")
_PASSWORD_NAME = lazy_pattern(r"pass(?:w(?:or)?d|phrase|code|wort)$|pwd$", re.IGNORECASE)
_SECRET_NAME = lazy_pattern(
    r"(?:secret|token|api[_\-. ]?key|(?:access|private|auth|account)[_\-]?key|credentials?)$",
    re.IGNORECASE,
)


class Redacted(NamedTuple):
    """A redacted text and the kinds of its secrets, in order of appearance."""

    text: str
    kinds: tuple[str, ...] = ()


def redact(text: str) -> Redacted:
    """Replace each secret with ``[redacted:kind]``; leave the rest unchanged."""
    candidates = _candidate_kinds(text)
    if not candidates:
        return Redacted(text)
    raw = text.encode()
    claimed: list[tuple[int, int, str]] = []
    for i in candidates:
        _claim_matches(i, raw, claimed)
    if not claimed:
        return Redacted(text)
    parts, at = [], 0
    for start, end, name in claimed:
        parts += [raw[at:start], f"[redacted:{name}]".encode()]
        at = end
    kinds = tuple(dict.fromkeys(name for _, _, name in claimed))
    return Redacted(b"".join([*parts, raw[at:]]).decode(), kinds)


def _candidate_kinds(text: str) -> list[int]:
    """Return the indexes of the kinds whose keywords occur in the text."""
    lower = text.lower().encode("utf-8", "surrogatepass")
    if all(sign.search(lower) is None for sign in _signs()):
        return []
    found: set[int] = set()
    keywords, tokens = _keyword_indexes()
    keywords.add_kinds(lower, found)
    if _CARD.search(text):
        found.update(_CARD_KINDS)
    long_words = " ".join([word for word in text.split() if len(word) >= _LONG_WORD])
    if long_words:
        tokens.add_kinds(long_words.encode("utf-8", "surrogatepass"), found)
        if _TOKEN_SHAPE.search(long_words):
            found.update(_TOKEN_KINDS)
    return sorted(found)


def _compile(pattern: bytes) -> re.Pattern[bytes]:
    import re2  # start-up time: loaded with the first text

    return cast("re.Pattern[bytes]", re2.compile(pattern))


class _Near(NamedTuple):
    """The keywords that begin so, and those that a search overlooks as they overlap it."""

    words: Sequence[bytes]
    overlap: re.Pattern[bytes] | None
    overlapping: Sequence[bytes]


_FEW = 32  # matches; RE2 is slower than Python's engine for each match, faster for each character


class _KeywordIndex:
    """Keywords by their beginnings: none of these begins another."""

    def __init__(self, keywords: Sequence[tuple[str, int]]) -> None:
        self._kinds: dict[bytes, list[int]] = {}
        for word, i in keywords:
            self._kinds.setdefault(word.encode(), []).append(i)
        self._tree = _any_of({word for word, _ in keywords}).encode()
        self._search = _compile(self._tree)
        self._near: dict[bytes, _Near] = {}

    def add_kinds(self, text: bytes, found: set[int]) -> None:
        """Add the kinds whose keywords occur in the text."""
        words: set[bytes] = set()
        for begin in self._find_beginnings(text):
            near = self._near.get(begin) or self._find_near(begin)
            words.update(near.words)
            if near.overlap is not None and near.overlap.search(text):
                words.update(near.overlapping)
        for word in words:
            if word in text:
                found.update(self._kinds[word])

    def _find_beginnings(self, text: bytes) -> set[bytes]:
        found, count, end = set(), 0, 0
        for match in islice(self._search.finditer(text), _FEW):
            found.add(match[0])
            count, end = count + 1, match.end()
        if count == _FEW:
            found.update(re.compile(self._tree).findall(text, end))
        return found

    def _find_near(self, begin: bytes) -> _Near:
        longer = [word for word in self._kinds if word.startswith(begin)]
        words = [word for word in self._kinds if any(word in known for known in longer)]
        joined = [
            (begin[:n] + word, word)
            for n in range(1, len(begin))
            for word in self._kinds
            if word.startswith(begin[n:]) and word not in words
        ]
        pattern = _any_of({text.decode("latin-1") for text, _ in joined}).encode("latin-1")
        overlap = _compile(pattern) if joined else None
        self._near[begin] = _Near(words, overlap, [word for _, word in joined])
        return self._near[begin]


@cache
def _signs() -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return what a lower-cased text without secrets lacks: keywords; long words, card numbers.

    As one pattern its automaton would outgrow the memory that RE2 gives it.
    """
    words = {word for kind in SECRET_KINDS if not kind.long for word in kind.words}
    shapes = rf"\S{{{_LONG_WORD}}}|{_CARD_SHAPE}"
    return _compile(_any_of(words).encode()), _compile(shapes.encode())


@cache
def _keyword_indexes() -> tuple[_KeywordIndex, _KeywordIndex]:
    """Index the keywords for a lower-cased text, and those for the long words of a text."""
    keywords = [(word, i) for i, kind in enumerate(SECRET_KINDS) for word in kind.words]
    return (
        _KeywordIndex([(word, i) for word, i in keywords if not SECRET_KINDS[i].long]),
        _KeywordIndex([(word, i) for word, i in keywords if SECRET_KINDS[i].long]),
    )


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for any of the words, or its beginning that is one: a tree of characters."""
    if "" in words:
        return ""
    rests: dict[str, set[str]] = {}
    for word in sorted(words):
        rests.setdefault(word[0], set()).add(word[1:])
    branches = [re.escape(first) + _any_of(rest) for first, rest in rests.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


@cache
def _compile_kind(kind_index: int) -> re.Pattern[bytes]:
    return _compile(SECRET_KINDS[kind_index].pattern.encode())


def _claim_matches(kind_index: int, raw: bytes, claimed: list[tuple[int, int, str]]) -> None:
    """Add one kind's matches to the claimed spans, in order, where they do not overlap."""
    kind = SECRET_KINDS[kind_index]
    if kind.near:
        _claim_words_near(kind_index, raw, claimed)
        return
    for match in _compile_kind(kind_index).finditer(raw):
        group = match.lastindex or 0
        start, end = match.span(group)
        position = _free_position(claimed, start, end)
        if position is None:
            continue
        if kind.unless.search(raw[match.start() : start].decode()):
            continue
        value = raw[start:end].decode()
        if group and raw[end : end + 1] not in _QUOTES:
            value = trim_value(value)
        if kind.check(value):
            claimed.insert(position, (start, start + len(value.encode()), kind.name))


def _free_position(claimed: list[tuple[int, int, str]], start: int, end: int) -> int | None:
    """Return where a span belongs among the claimed ones; None if it overlaps one."""
    position = bisect_left(claimed, (start,))
    before_is_free = position == 0 or claimed[position - 1][1] <= start
    if not before_is_free or (position < len(claimed) and end > claimed[position][0]):
        return None
    return position


_REACH = 80  # bytes
_MIN_WORD, _MAX_WORD = 8, 80  # bytes
_MARKS = b"*_~"


def _claim_words_near(kind_index: int, raw: bytes, claimed: list[tuple[int, int, str]]) -> None:
    """Claim the words that the kind's check accepts and that stand near one of its matches."""
    kind = SECRET_KINDS[kind_index]
    words = [_strip_marks(raw, *match.span()) for match in _digit_words().finditer(raw)]
    words = [(start, end) for start, end in words if _MIN_WORD <= end - start <= _MAX_WORD]
    spans = [match.span() for match in _compile_kind(kind_index).finditer(raw)] if words else []
    for start, end in words:
        position = _free_position(claimed, start, end)
        if position is None or not _is_near(raw, spans, start, end):
            continue
        value = trim_value(raw[start:end].decode())
        if kind.check(value):
            claimed.insert(position, (start, start + len(value.encode()), kind.name))


def _strip_marks(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the span of a word without the marks of Markdown around it."""
    word = raw[start:end]
    return end - len(word.lstrip(_MARKS)), start + len(word.rstrip(_MARKS))


def _is_near(raw: bytes, spans: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether a span begins on the line or the next line of the last match, or ends before one."""
    position = bisect_left(spans, (start,))
    if position and start - spans[position - 1][1] <= _REACH:
        last = spans[position - 1][1]
        if start >= last and raw.count(b"\n", last, start) <= 1:
            return True
    if position == len(spans):
        return False
    following = spans[position][0]
    return 0 <= following - end <= _REACH and b"\n" not in raw[end:following]


@cache
def _digit_words() -> re.Pattern[bytes]:
    part = rb"[^\s\"'\x60<>(){}\[\],;=|\\]*"
    return _compile(part + b"[0-9]" + part)


_REDACTED_FIELDS = tuple(field for field in GIVEN_FIELDS if field.redacted)
_TEXT_FIELDS = field_names(_REDACTED_FIELDS, "text", "word")
_LIST_FIELDS = field_names(_REDACTED_FIELDS, "words")


def redact_draft(draft: Draft) -> tuple[Draft, tuple[str, ...]]:
    """Redact all text fields of a draft; return the draft and the kinds found."""
    kinds: dict[str, None] = {}

    def clean(text: str) -> str:
        cleaned = redact(text)
        if cleaned.kinds:
            kinds.update(dict.fromkeys(cleaned.kinds))
        return cleaned.text

    values = ((name, getattr(draft, name)) for name in _TEXT_FIELDS)
    changes: Json = {name: clean(value) for name, value in values if value}
    for name in _LIST_FIELDS:
        if listed := getattr(draft, name):
            changes[name] = tuple(map(clean, listed))
    if draft.metadata:
        changes["metadata"] = _redact_json(draft.metadata, clean, kinds)
    return (draft._replace(**changes) if kinds else draft), tuple(kinds)


def _redact_json(value: object, clean: Callable[[str], str], kinds: dict[str, None]) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {
            (name if _is_plain_name(name) else clean(name)): (
                _redact_field(name, entry, kinds) or _redact_json(entry, clean, kinds)
            )
            for name, entry in value.items()
        }
    if isinstance(value, list | tuple):
        # One search for all strings of a list: what is a sign in one is one in the lines of all.
        only_text = len(value) > 1 and all(isinstance(entry, str) for entry in value)
        if only_text and not _candidate_kinds("\n".join(value)):
            return list(value)
        return [_redact_json(entry, clean, kinds) for entry in value]
    return value


@lru_cache(maxsize=256)
def _is_plain_name(name: str) -> bool:
    """Whether the name of a field has no sign of a secret: the same names come again and again."""
    return not _candidate_kinds(name)


def _redact_field(name: str, value: object, kinds: dict[str, None]) -> str | None:
    """Return the replacement for a value that only its field name gives away."""
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
