"""Detect and redact secrets in memories, and report their kinds.

Every pattern runs in RE2, in time linear in the text, and only on texts that hold one of
its keywords, which are searched first, all in one pass.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from bethink.core.json_values import Json
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.ingest import secret_values
from bethink.ingest.secret_values import trim_value
from bethink.model import Draft
from bethink.model.fields import GIVEN_FIELDS, field_names
from bethink.ports import FindSecrets


class SecretKind(NamedTuple):
    """A secret's pattern, the keywords it requires and a check of each match.

    The last group that took part in the match is the secret; without groups it is the whole
    match. Keywords are lower case and searched in any case; those of a ``long`` kind as they
    are, in words of 20 characters. The words before the secret must not match ``unless``. With
    ``near`` the match itself is no secret: every word around it that the check accepts is one.
    A ``personal`` kind is searched only on request.
    """

    name: str
    words: tuple[str, ...]
    pattern: str
    check: Callable[[str], bool]
    unless: re.Pattern[str]
    long: bool = False
    near: bool = False
    personal: bool = False


_MARK = re.compile(r"<([A-Z_]{2,})>")


def _read_kinds() -> Iterator[SecretKind]:
    """Read the table next to this module; its head explains the columns."""
    fragments: dict[str, str] = {}
    exclusions: dict[str, re.Pattern[str]] = {}
    section = ""
    for line in Path(__file__).with_name("secret_kinds.txt").read_text("utf-8").splitlines():
        if line.startswith(("#", "@")):
            section = line
            continue
        name, *columns = _MARK.sub(lambda mark: fragments[mark[1]], line).split("\t")
        if len(columns) == 1:
            fragments[name] = columns[0]
            continue
        check, words, pattern, *unless = columns
        if not unless:
            unless = [fragments["OTHER_CODES" if name == "pin" else "NAMES"]]
        yield SecretKind(
            name,
            tuple(filter(None, words.split(","))),
            pattern,
            getattr(secret_values, f"is_{check}"),
            exclusions.setdefault(unless[0], lazy_pattern(unless[0])),
            long=section == "@long",
            near=check.endswith("nearby"),
            personal=section == "@personal",
        )


SECRET_KINDS = tuple(_read_kinds())


# Kinds without a keyword, and what at least one of them needs.
_CARD_KINDS = tuple(
    i for i, kind in enumerate(SECRET_KINDS) if not (kind.words or kind.long or kind.personal)
)
_CARD = lazy_pattern(r"[3-6][0-9]{3}[ -]?[0-9]{4,6}[ -]?[0-9]{4}")
_TOKEN_KINDS = tuple(i for i, kind in enumerate(SECRET_KINDS) if not kind.words and kind.long)
_TOKEN_SHAPE = lazy_pattern(
    r"[_\-.][A-Za-z0-9_\-]{36}|[MNO][\w-]{22,27}\.[\w-]{6}\.|[5KL][A-Za-z0-9]{50}"
    r"|[A-Z0-9_]=[\"']?[A-Za-z0-9_\-+/.~]{20}|(?:^| )[\"'`]?[A-Za-z0-9_\-+/=.~]{20,}[\"'`]?(?: |$)"
)
_PERSONAL_KINDS = tuple(i for i, kind in enumerate(SECRET_KINDS) if kind.personal)
_PERSONAL = lazy_pattern(r"[0-9](?:[\s\-./A-Z]{0,3}[0-9]){4}")
_LONG_WORD = 20  # characters
_SEARCH_BYTES = 32 << 20  # bytes: the most that searching keywords takes
_QUOTES = (b'"', b"'", b"`")
_SECRET_FIELD = lazy_pattern(
    r"(?:pass(?:w(?:or)?d|phrase|code|wort)|pwd|secret|token|credentials?"
    r"|(?:api|access|private|auth|account|signing|encryption)[_\-. ]?key)$",
    re.IGNORECASE,
)


class Redacted(NamedTuple):
    """A redacted text and the kinds of its secrets, in order of appearance."""

    text: str
    kinds: tuple[str, ...] = ()


def redact(
    text: str, *, personal: bool = False, named: bool = False, find: FindSecrets | None = None
) -> Redacted:
    """Replace each secret with ``[redacted:kind]``; leave the rest unchanged.

    ``personal`` also replaces the numbers of persons and their accounts. With ``named`` nothing
    is replaced for its shape alone, which an identifier may have. ``find`` finds more secrets.
    """
    candidates = _candidate_kinds(text)
    if personal and _PERSONAL.search(text):
        candidates += _PERSONAL_KINDS
    if named:
        candidates = [i for i in candidates if i not in _TOKEN_KINDS]
    found = find(text) if find else ()
    if not (candidates or found):
        return Redacted(text)
    raw = text.encode()
    claimed: list[tuple[int, int, str]] = []
    for i in candidates:
        _claim_matches(i, raw, claimed)
    for begin, end in found:
        start = len(text[:begin].encode())
        stop = start + len(text[begin:end].encode())
        if (position := _free_position(claimed, start, stop)) is not None:
            claimed.insert(position, (start, stop, "secret"))
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
    keywords, tokens = _keyword_sets()
    found = keywords.find(text.lower())
    if _CARD.search(text):
        found.update(_CARD_KINDS)
    long_words = " ".join([word for word in text.split() if len(word) >= _LONG_WORD])
    if long_words:
        found |= tokens.find(long_words)
        if _TOKEN_SHAPE.search(long_words):
            found.update(_TOKEN_KINDS)
    return sorted(found)


class _KeywordSet:
    """The keywords of some kinds, all searched in one pass over a text."""

    def __init__(self, *, long: bool) -> None:
        import re2  # start-up time: loaded with the first text

        options = re2.Options()
        options.max_mem = _SEARCH_BYTES
        self._set = re2.Set.SearchSet(options)
        kinds = [(i, kind) for i, kind in enumerate(SECRET_KINDS) if not kind.personal]
        self._kinds = [i for i, kind in kinds if kind.words and kind.long is long]
        for i in self._kinds:
            self._set.Add("|".join(map(re2.escape, SECRET_KINDS[i].words)))
        self._set.Compile()

    def find(self, text: str) -> set[int]:
        """Return the kinds that have a keyword in the text."""
        found = self._set.Match(text.encode("utf-8", "surrogatepass"))
        return {self._kinds[place] for place in found or ()}


@cache
def _keyword_sets() -> tuple[_KeywordSet, _KeywordSet]:
    """Index the keywords for a lower-cased text, and those for the long words of a text."""
    return _KeywordSet(long=False), _KeywordSet(long=True)


@cache
def _compile(pattern: str) -> re.Pattern[bytes]:
    import re2  # start-up time: loaded with the first text

    return cast("re.Pattern[bytes]", re2.compile(pattern.encode()))


def _claim_matches(kind_index: int, raw: bytes, claimed: list[tuple[int, int, str]]) -> None:
    """Add one kind's matches to the claimed spans, in order, where they do not overlap."""
    kind = SECRET_KINDS[kind_index]
    if kind.near:
        _claim_words_near(kind_index, raw, claimed)
        return
    pattern, at = _compile(kind.pattern), 0
    while match := pattern.search(raw, at):  # what follows one may begin the next
        group = match.lastindex or 0
        start, end = match.span(group)
        at = max(end, match.start() + 1)
        position = _free_position(claimed, start, end)
        if position is None or kind.unless.search(raw[match.start() : start].decode()):
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
_MIN_WORD, _MAX_WORD = 8, 800  # bytes
_MARKS = b"*_~"
_WORD_PART = r"[^\s\"'\x60<>(){}\[\],;=|\\]*"
_DIGIT_WORD = f"{_WORD_PART}[0-9]{_WORD_PART}"


def _claim_words_near(kind_index: int, raw: bytes, claimed: list[tuple[int, int, str]]) -> None:
    """Claim the words that the kind's check accepts and that stand near one of its matches."""
    kind = SECRET_KINDS[kind_index]
    words = [_strip_marks(raw, *match.span()) for match in _compile(_DIGIT_WORD).finditer(raw)]
    words = [(start, end) for start, end in words if _MIN_WORD <= end - start <= _MAX_WORD]
    spans = [match.span() for match in _compile(kind.pattern).finditer(raw)] if words else []
    for start, end in words:
        position = _free_position(claimed, start, end)
        if position is None or not _is_near(raw, spans, start, end):
            continue
        line = max(raw.rfind(b"\n", max(start - _REACH, 0), start) + 1, start - _REACH, 0)
        if kind.unless.search(raw[line:start].decode(errors="ignore")):
            continue
        word = raw[start:end].decode()
        # A password may end with what ends a sentence.
        for value in (trim_value(word), word.rstrip(".,;:)")):
            if kind.check(value):
                claimed.insert(position, (start, start + len(value.encode()), kind.name))
                break


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


_TEXT_FIELDS = tuple(n for n in field_names(GIVEN_FIELDS, "text", "word") if n != "session")
_LIST_FIELDS = field_names(GIVEN_FIELDS, "words")


def redact_draft(
    draft: Draft, *, personal: bool = False, find: FindSecrets | None = None
) -> tuple[Draft, tuple[str, ...]]:
    """Redact all text fields of a draft; return the draft and the kinds found.

    A key with a secret becomes its hash, which recognises a repetition as well. Only the text
    itself is read by ``find``: other fields hold names and numbers without a sentence.
    """
    kinds: dict[str, None] = {}

    def clean(text: str, *, named: bool = False, find: FindSecrets | None = None) -> str:
        cleaned = redact(text, personal=personal, named=named, find=find)
        kinds.update(dict.fromkeys(cleaned.kinds))
        return cleaned.text

    values = ((name, getattr(draft, name)) for name in _TEXT_FIELDS if name != "text")
    changes: Json = {name: clean(value) for name, value in values if value}
    changes["text"] = clean(draft.text, find=find)
    if draft.session:
        changes["session"] = clean(draft.session, named=True)
    if draft.key and clean(draft.key, named=True) != draft.key:
        changes["key"] = f"sha256:{hashlib.sha256(draft.key.encode()).hexdigest()}"
    for name in _LIST_FIELDS:
        if listed := getattr(draft, name):
            changes[name] = tuple(map(clean, listed))
    if draft.metadata:
        changes["metadata"] = _redact_json(draft.metadata, clean)
    return (draft._replace(**changes) if kinds else draft), tuple(kinds)


def redact_json(value: object, *, personal: bool = False) -> Any:
    """Redact all texts in a JSON value."""
    return _redact_json(value, lambda text: redact(text, personal=personal).text)


def _redact_json(value: object, clean: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {
            (name if _is_plain_name(name) else clean(name)): (
                _redact_field(name, entry, clean) or _redact_json(entry, clean)
            )
            for name, entry in value.items()
        }
    if isinstance(value, list | tuple):
        # One search for all strings of a list: what is a sign in one is one in the lines of all.
        only_text = len(value) > 1 and all(isinstance(entry, str) for entry in value)
        joined = "\n".join(value) if only_text else ""
        if only_text and not (_PERSONAL.search(joined) or _candidate_kinds(joined)):
            return list(value)
        return [_redact_json(entry, clean) for entry in value]
    return value


def refuse_secret(name: str, value: str) -> None:
    """Raise Refused where a name that has to stay as it is holds a secret."""
    if kinds := redact(value, named=True).kinds:
        raise Refused(f"{name} holds a secret ({kinds[0]})", remedy="use another, or omit it")


@lru_cache(maxsize=256)
def _is_plain_name(name: str) -> bool:
    """Whether the name of a field has no sign of a secret: the same names come again and again."""
    return not _candidate_kinds(name)


def _redact_field(name: str, value: object, clean: Callable[[str], str]) -> str | None:
    """Return the replacement for a value that only its field name gives away."""
    if not isinstance(value, str) or not _SECRET_FIELD.search(name):
        return None
    head, text = f'{name}: "', f'{name}: "{value}"'
    cleaned = clean(text)
    is_found = cleaned != text and cleaned.startswith(head)  # a name is cleaned by itself
    return cleaned[len(head) :].removesuffix('"') if is_found else None
