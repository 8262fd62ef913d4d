"""A note that nobody asked for: one memory that an event of a session makes relevant.

A command that failed, the first edit of code that a memory is tied to, one place edited again
and again, a command or an import that adds what was decided against. At most one short note
an event, few in a session, each memory once, and only above a measured threshold
(docs/decisions/0066-unasked-notes.md); otherwise nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.briefing import format_context, is_safe_to_inject, sanitize_quote
from bethink.agents.session import (
    CallMarks,
    SessionState,
    resolve_in_project,
    session_state,
)
from bethink.code.symbols import find_symbols
from bethink.core.lazy import lazy_pattern
from bethink.core.sentences import sentences
from bethink.errors import Refused
from bethink.ingest.redaction import redact
from bethink.model import Item
from bethink.model.anchor import anchor_name
from bethink.render.quoting import quote_hit, quote_item

if TYPE_CHECKING:
    from bethink.memory import Memory
    from bethink.render.quoting import Quote

NAME = "note"
MAX_NOTES = 6  # of a session
MIN_CALLS_APART = 3
_MAX_CHARS = 280
_MAX_TOKENS = 400  # of a memory: a note is no document
# Of the answer to a failure; higher values lose as many right notes as wrong ones.
MIN_CONFIDENCE = 0.5
_MIN_SHARED = 2  # rare terms that the error and the memory have in common
_RARE_SHARE, _RARE_COUNT = 0.02, 3
_REPEATED = 3  # edits of one file in the last calls
_MAX_QUERY_CHARS = 400
_MAX_ERROR_LINES = 4
_MAX_LOOKED_UP = 8  # packages of one call: a manifest lists hundreds
OPENINGS = {
    "failure": "A memory of this project (Bethink) that may concern this failure:",
    "touch": "A memory of this project (Bethink) that is tied to this code:",
    "edit": "A memory of this project (Bethink) that is tied to this code, edited repeatedly:",
    "contradiction": "A decision of this project (Bethink) that this may contradict:",
}

_ANSI = lazy_pattern(r"\x1b\[[0-9;?]*[A-Za-z]")
_ERROR_LINE = lazy_pattern(
    r"(?i)\b\w*(?:error|exception|fault)\b|\b(?:failed|failure|fatal|panic(?:ked)?|cannot|can't|could"
    r" not|couldn't|unable|denied|refused|undefined|unresolved|unknown|missing|invalid|timed out"
    r"|no such|not found|not recognized|not installed|aborted|conflict|exceeded|fail)\b|^E\s{2,}"
)
_PATH = lazy_pattern(r"(?:[\w.~-]*[/\\])*?((?:[\w.~-]+[/\\])?[\w.-]+)(?![\w/\\.-])")
_FILE = lazy_pattern(r"\b[\w.-]+[/\\][\w./\\-]+|\b[\w-]+\.[a-z]{1,4}\b(?!\()")
_NUMBER = lazy_pattern(r"\b(?:0x[0-9a-fA-F]+|[0-9a-f]{8,}|\d+(?:[.:]\d+)*(?:ms|s|%)?)\b")
_CODE = lazy_pattern(r"\b\d{4,5}\b")
_NOT_AN_ERROR = lazy_pattern(r"(?i)\b(?:0 (?:errors?|failed|failures)|no errors?|errors?: 0)\b")
_FAILING_OUTPUT = lazy_pattern(
    r"(?m)^(?:FAILED\b|Traceback \(most recent|E\s{3}|npm ERR!|error(?:\[\w+\])?: |fatal: |panic: )"
    r"|\b(?:\d+ failed\b|[A-Z]\w+(?:Error|Exception): )"
)
# Commands and lines that bring something in, whatever the language.
_ADDING = lazy_pattern(r"\b(?:install|add|require|get|i)\s+([^;&|\n]+)")
_IMPORTING = lazy_pattern(
    r"^\s*(?:import|from|use|using|require|require_relative|include|#include|@import|alias|library"
    r"|extern crate|load)\b|\b(?:require|import|library)\(|\bfrom\s+[\"']|^\s*\"[\w./-]+\"\s*$"
)
_MANIFEST = lazy_pattern(
    r"(?i)(?:^|/)(?:requirements[^/]*|pyproject\.toml|setup\.(?:py|cfg)|package\.json|cargo\.toml"
    r"|go\.mod|gemfile|mix\.exs|composer\.json|podfile|pom\.xml|description|pubspec\.yaml"
    r"|[^/]+\.(?:csproj|fsproj|gemspec|cabal|podspec)|build\.(?:gradle|sbt)[^/]*|[^/]*\.versions\.toml"
    r"|environment\.ya?ml|dockerfile|packages\.config|deps\.edn|project\.clj|package\.swift)$"
)
_NAME = lazy_pattern(r"@?[A-Za-z][\w./@+-]*\w")
_HUMP = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
# How a sentence rejects what it names: before the name, within a few words, or after it.
_REJECTS_BEFORE = lazy_pattern(
    r"(?i)(?:\b(?:against|avoid\w*|ban\w*|drop(?:ped|s)?|remov\w+|reject\w*|replac\w+|instead of"
    r"|rather than|away from|(?:moved?|switch\w*|migrat\w+) (?:off|from)|no|not|never|without"
    r"|don't|do not|stop|over|gegen|keine?n?|nicht|niemals|statt|ohne|contre|pas de|jamais"
    r"|au lieu de|plutôt que|sans|contra|sin|nunca|en lugar de|en vez de)"
    r"|不用|不要|弃用|禁止|放弃)\W*(?:\w+\W+){0,3}$"
)
# What follows it is spoken of for itself: "moved from A to B", "A replaced with B".
_OTHER_PART = lazy_pattern(r"(?i)[;:,.]|\b(?:to|with|by|zu|durch|mit|par|avec|por|con)\b")
_REJECTS_AFTER = lazy_pattern(
    r"(?i)^\W*(?:(?:was|is|are|were|got|wird|wurde|est|fue|es)\W+)?(?:\w+\W+){0,4}(?:banned"
    r"|forbidden|out\b(?! of)|dropped|removed|rejected|replaced|deprecated|gone|not allowed"
    r"|nicht erlaubt|not (?:be )?used|nicht mehr"
    r"|not an option|decided against|too|no longer|verboten|raus|interdit|prohibid|rejeté"
    r"|descartad)"
)


def unasked_note(memory: Memory, payload: Mapping[str, object]) -> str:
    """Return the note for an event of a session, fenced as data; empty for nearly all.

    ``payload`` is the host's input. The caller records the quoted ids as given.
    """
    kinds = set(memory.settings.unasked.split(","))
    session = str(payload.get("session_id") or "")
    state, call = session_state(memory, session), _Call(memory, payload)
    marks = state.count_call(call.edited)
    if payload.get("agent_id") or marks.notes >= MAX_NOTES or marks.since <= MIN_CALLS_APART:
        return ""
    memory = memory.below(memory.settings.max_classification)
    for kind, found in call.candidates(memory, marks):
        if kind in kinds:
            note = _first_new(found, state, session)
            if note is not None:
                state.count_note(marks)
                return format_context(OPENINGS[kind], [sanitize_quote(note, _MAX_CHARS)], NAME)
    return ""


def _first_new(
    found: Iterable[tuple[Item, Quote]], state: SessionState, session: str
) -> Quote | None:
    given = set(state.given)
    for item, quote in found:
        if (
            item.id not in given
            and is_safe_to_inject(item)
            and (not session or item.session != session)
            and item.tokens <= _MAX_TOKENS
        ):
            return quote
    return None


class _Call:
    """One call of a tool, as the host describes it."""

    def __init__(self, memory: Memory, payload: Mapping[str, object]) -> None:
        self._event = str(payload.get("hook_event_name") or "")
        given = payload.get("tool_input")
        self._input: Mapping[str, object] = given if isinstance(given, Mapping) else {}
        self._output = payload.get("error") or payload.get("tool_response") or ""
        self._interrupted = bool(payload.get("is_interrupt"))
        self._transcript = str(payload.get("transcript_path") or "")
        self._session = str(payload.get("session_id") or "")
        self.command = self._text("command")
        path = self._text("file_path") or self._text("notebook_path")
        root = memory.settings.project
        real = resolve_in_project(path, str(payload.get("cwd") or ""), root) if path else None
        self.path = real.relative_to(Path(root).resolve()).as_posix() if real and root else ""
        self.edited = self.path if self._event == "PostToolUse" else ""

    def candidates(
        self, memory: Memory, marks: CallMarks
    ) -> Iterator[tuple[str, Iterable[tuple[Item, Quote]]]]:
        """Yield for each kind of note what may be shown, the best first."""
        if self._event == "PreToolUse":
            yield "contradiction", _decided_against(memory, self._added(), self._asked_for)
            if self.path and self.path not in marks.touched:
                yield "touch", _tied_to(memory, self.path, self._edit())
        elif self.path:
            if marks.recent.count(self.path) == _REPEATED:
                yield "edit", _tied_to(memory, self.path, self._edit())
        elif not self._interrupted and (failure := self._failure()):
            yield "failure", _on_failure(memory, failure, self._session)

    def _text(self, name: str) -> str:
        value = self._input.get(name)
        return value if isinstance(value, str) else ""

    def _edit(self) -> str:
        """What an edit takes out and puts in, and the names of what it is inside of."""
        parts = [self._text(name) for name in ("old_string", "new_string", "content")]
        with suppress(OSError, ValueError):
            text = Path(self._text("file_path")).read_text("utf-8") if parts[0] else ""
            line = text[: text.index(parts[0])].count("\n")
            inside = (one for one in find_symbols(self.path, text) if one.start <= line < one.end)
            parts += [symbol.name for symbol in inside]
        return "\n".join(parts)

    def _failure(self) -> str:
        """The output of a failed command; empty where it did not fail."""
        output = self._output
        if isinstance(output, Mapping):
            parts = ("stdout", "stderr", "error")
            output = "\n".join(str(output.get(name) or "") for name in parts)
        text = _ANSI.sub("", str(output))
        failed = self._event == "PostToolUseFailure" or _FAILING_OUTPUT.search(text)
        return text if failed else ""

    def _added(self) -> set[str]:
        """The names of packages and modules that this call adds."""
        added = [" ".join(_ADDING.findall(self.command))]
        old = self._text("old_string")
        new = "\n".join(map(self._text, ("new_string", "content")))
        is_manifest = bool(_MANIFEST.search(self.path))
        added += [
            line
            for line in new.splitlines()
            if line not in old and (is_manifest or _IMPORTING.search(line))
        ]
        words = [word for line in added for word in _NAME.findall(line)]
        return {name for word in words for name in _package_names(word)}

    def _asked_for(self, name: str) -> bool:
        """Whether the user has named it in this session, at the end of the transcript."""
        with suppress(OSError), Path(self._transcript).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 65_536))
            lines = file.read().decode("utf-8", "replace").lower().splitlines()
            return any('"type":"user"' in line.replace(" ", "") and name in line for line in lines)
        return False


def _package_names(word: str) -> Iterator[str]:
    """The names by which people speak of a package: without version, scope and submodule."""
    name = re.split(r"@(?=\d)|(?<=.)@", word)[0]
    scope, _, last = name.lstrip("@").rpartition("/")
    dotted = name.split(".")
    parts = [name, last, dotted[0], dotted[-1], last.partition("-")[0], scope]
    parts += [_HUMP.split(part)[0] for part in parts]
    for part in dict.fromkeys((*parts, *(re.sub(r"[.-]?js$", "", part) for part in parts))):
        if len(part) >= 3:
            yield part.lower()


def clean_error(text: str) -> str:
    """Return what an error says, without paths, numbers and addresses: the last such lines."""
    lines = [
        line.strip()[:_MAX_QUERY_CHARS]  # a line of any length costs the patterns no more
        for line in text.splitlines()
        if _ERROR_LINE.search(line) and not _NOT_AN_ERROR.search(line)
    ]
    cleaned = [_NUMBER.sub(" ", _PATH.sub(r"\1", line)) for line in lines[-_MAX_ERROR_LINES:]]
    return " ".join(" ".join(dict.fromkeys(cleaned)).split())[:_MAX_QUERY_CHARS]


def _on_failure(memory: Memory, output: str, session: str) -> Iterator[tuple[Item, Quote]]:
    """Yield memories that share rare words with an error, and are found on it with confidence."""
    error = redact(clean_error(output)).text
    # Files that an error names are those of the project, whatever the error.
    words = memory.store.search.words(_FILE.sub(" ", error))
    terms = {term for word in words if not word.common for term in word.terms}
    if len(terms) < _MIN_SHARED:
        return
    try:
        answer = memory.recall(error, k=3, track=False, own_session=session or None)
    except Refused:
        return
    if answer.status != "found" or answer.confidence < MIN_CONFIDENCE:
        return
    shared = {hit.item.id: _rare_terms(hit.item.text, terms, memory) for hit in answer.hits}
    for hit in sorted(answer.hits, key=lambda hit: -len(shared[hit.item.id])):
        if len(shared[hit.item.id]) >= _MIN_SHARED and _fit_numbers(hit.item.text, output):
            yield hit.item, quote_hit(hit)


def _rare_terms(text: str, terms: set[str], memory: Memory) -> set[str]:
    """The terms that a text has, too, and few memories hold."""
    known = memory.store.search.statistics(terms.intersection(memory.store.search.terms(text)))
    most = max(_RARE_COUNT, _RARE_SHARE * known.documents)
    return {term for term, count in known.frequencies.items() if count <= most}


def _fit_numbers(text: str, output: str) -> bool:
    """Whether a memory names a port or code of the error, or none at all."""
    named = set(_CODE.findall(text))
    return not named or not (codes := set(_CODE.findall(output))) or bool(named & codes)


def _tied_to(memory: Memory, path: str, edit: str) -> Iterator[tuple[Item, Quote]]:
    """Yield the memories tied to a file that share words with an edit, those with most first."""
    words = [word for word in memory.store.search.words(edit) if not word.common]
    about = {term for word in words for term in word.terms}
    about -= {*memory.store.search.terms(path)}
    folder = path.rpartition("/")[0]
    found = [
        *memory.anchored(path),
        *(item for item in memory.browse(at=folder, limit=20) if folder in _names(item)),
    ]
    shared = {
        item.id: (len(about.intersection(memory.store.search.terms(item.text))), item)
        for item in found
        if item.level != "raw"
    }
    stem = re.escape(Path(path).stem)
    for count, item in sorted(shared.values(), key=lambda pair: -pair[0]):
        symbols = {name.partition("::")[2] for name in _names(item)} - {""}
        is_meant = any(symbol.rpartition(".")[2] in edit for symbol in symbols)
        if count or is_meant or re.search(rf"(?<!\w){stem}(?![a-z])", item.text):
            yield item, quote_item(item)


def _names(item: Item) -> list[str]:
    return [anchor_name(anchor) for anchor in item.anchors]


def _decided_against(
    memory: Memory, names: set[str], asked_for: Callable[[str], bool]
) -> Iterator[tuple[Item, Quote]]:
    """Yield what was decided against one of the names, unless the user asks for it.

    The newest memory that names it decides: a decision may have been reversed.
    """
    terms = {name: memory.store.search.terms(name) for name in names}
    counts = memory.store.search.statistics({one for own in terms.values() for one in own})
    known = (
        name  # of nearly all there is no memory
        for name in sorted(names)
        if terms[name] and all(counts.frequencies.get(one) for one in terms[name])
    )
    for name in islice(known, _MAX_LOOKED_UP):
        with suppress(Refused):
            answer = memory.recall(name, k=10, track=False, min_trust=2)
            naming = [hit for hit in answer.hits if _mentions(name).search(hit.item.text)]
            newest = max(naming, key=lambda hit: hit.item.when, default=None)
            if newest and _rejects(newest.item.text, name) and not asked_for(name):
                yield newest.item, quote_hit(newest)


@cache
def _mentions(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w@/-]){re.escape(name)}(?:\.?js)?(?![\w/-])", re.IGNORECASE)


def _rejects(text: str, name: str) -> bool:
    """Whether a sentence of the text speaks against the name."""
    for sentence in sentences(text) or [text]:
        for found in _mentions(name).finditer(sentence):
            before = _OTHER_PART.split(sentence[: found.start()])[-1]
            after = sentence[found.end() :]
            if _REJECTS_BEFORE.search(before) or _REJECTS_AFTER.search(after):
                return True
    return False
