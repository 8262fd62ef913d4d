"""Unasked notes: one memory that an event of a session makes relevant.

A command that failed, an edit of code that a memory is tied to, one place edited again
and again, a command or an import that adds what was decided against. At most one short note
an event, few in a session, each memory once, and only above a measured threshold
(docs/decisions/0066-unasked-notes.md); otherwise nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import SequenceMatcher
from functools import cache
from itertools import islice
from operator import itemgetter, mul
from pathlib import Path
from typing import TypeVar

from bethink.agents.briefing import format_context, is_safe_to_inject, sanitize_quote
from bethink.agents.session import CallMarks, SessionState, resolve_in_project, session_state
from bethink.code.symbols import find_symbols
from bethink.core.lazy import lazy_pattern
from bethink.core.sentences import sentences
from bethink.errors import ModelError, Refused
from bethink.ingest.redaction import redact
from bethink.memory import Memory
from bethink.model import Candidate, Item
from bethink.model.anchor import anchor_name
from bethink.model.item import RULE_KINDS
from bethink.render.quoting import Quote, quote_hit, quote_item

_T = TypeVar("_T")
NAME = "note"
MAX_NOTES = 6  # of a session
_MAX_CHARS = 280
_MAX_TOKENS = 400  # of a memory: a note is no document
REPEATED = 3  # edits of one file in the last calls
_MAX_QUERY_CHARS = 400
_MAX_ERROR_LINES, _MAX_LAST_LINES = 4, 12
_MAX_OUTPUT_CHARS = 4_000
_MAX_TIED = 8  # memories tied to one file that are compared with an edit
_MAX_RUN = 6
# Weights of features and less the threshold, fitted by training/fit_unasked.py.
_ON_FAILURE = (6.6, 2.2, 1.1, 0.2, -8.4)
_ON_EDIT = (1.8, 1.5, 3.0, -0.7)
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
_NUMBER = lazy_pattern(r"\b(?:0x[0-9a-fA-F]+|[0-9a-f]{8,}|\d+(?:[.:]\d+)*(?:ms|s|%)?)\b")
_WORD = lazy_pattern(r"\w+")
_SEPARATOR = lazy_pattern(r"[_\W]+")
_NOT_AN_ERROR = lazy_pattern(r"(?i)\b(?:0 (?:errors?|failed|failures)|no errors?|errors?: 0)\b")
_FAILING_OUTPUT = lazy_pattern(
    r"(?m)^(?:FAILED\b|Traceback \(most recent|E\s{3}|npm ERR!|error(?:\[\w+\])?: |fatal: |panic: )"
    r"|\b(?:\d+ failed\b|[A-Z]\w+(?:Error|Exception): )"
)
# Commands and lines that bring something in, whatever the language.
_ADDING = lazy_pattern(r"((?:[\w.-]+\s+){1,2})(?:install|add|require|get|i)\s+([^;&|\n]+)")
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
_NO_PACKAGE = lazy_pattern(
    r"(?i)(?:import|from|us(?:e|ing)|require|include|library|package|tests?)$"
)
_USED = lazy_pattern(r"(?<![\w.])[A-Z]\w+(?=\.\w|::)")
_NAME = lazy_pattern(r"@?[A-Za-z][\w./@+-]*\w")
_HUMP = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
# How a sentence rejects what it names: before the name, within a few words, or after it.
_REJECTS_BEFORE = lazy_pattern(
    r"(?i)(?:\b(?:against|avoid\w*|ban\w*|drop(?:ped|s)?|remov\w+|reject\w*|replac\w+|instead of"
    r"|rather than|away from|rid of|phas\w+ out|abandon\w*|(?:moved?|switch\w*|migrat\w+) (?:off"
    r"|from)|killed|ditched|over|no|not|never|without|don't|stop|gegen|keine?n?|nicht|niemals|statt"
    r"|ohne|contre|pas de|n'\w+ (?:pas|plus)|jamais|au lieu de|plutôt que|sans|contra|sin|nunca"
    r"|en lugar de|en vez de)\b\W*(?:\w+\W+){0,2}|(?:不用|不要|不再|弃用|禁止|放弃)\W*\w{0,2}\W*)$"
)
# What follows is spoken of for itself: "moved from A to B", "we use A; B is banned".
_OTHER_PART = lazy_pattern(r"(?i)[;,.]|:\s|\b(?:to|with|by|zu|durch|mit|par|avec|por|con)\b")
_NEXT_PART = lazy_pattern(r"(?i);|[.]\s|,(?=\s*(?:\S+\s+){1,3}(?:is|was|ist|est|es|wurde)\b)")
_REJECTS_AFTER = lazy_pattern(
    r"(?i)^\W*(?:\w+\W+){0,5}?(?:banned|forbidden|dropped|removed|rejected|replaced|deprecated"
    r"|gone|decided against|voted down|no-go|no longer|not used|verboten|raus\b|ersetzt|interdit"
    r"|remplacé|abandonn|rejeté|prohibid|descartad|(?:is|are|was|were|thrown|ruled|phased) out\b"
    r"|(?:is|are|was|were|be|must|ist|wird|darf|est|es) (?:\w+ ){0,3}?(?:not|nicht|pas|too)\b)"
)
_ACCEPTS = lazy_pattern(r"(?i)\b(?:again|back|allowed|fine|ok|we use|use|wieder|erlaubt)\b")


def unasked_note(memory: Memory, payload: Mapping[str, object]) -> str:
    """Return the note for an event of a session, fenced as data; empty for nearly all.

    ``payload`` is the host's input. The caller records the quoted ids as given.
    """
    kinds = set(memory.settings.unasked.split(","))
    session = str(payload.get("session_id") or "")
    state, call = session_state(memory, session), Call(memory, payload)
    marks = state.count_call(call.edited)
    if payload.get("agent_id") or marks.notes >= MAX_NOTES:
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


class Call:
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
            if self.path:
                yield "touch", _tied_to(memory, self.path, self.edit())
        elif self.path:
            if marks.recent.count(self.path) == REPEATED:
                yield "edit", _tied_to(memory, self.path, self.edit())
        elif not self._interrupted and (failure := self.failure()):
            yield "failure", _on_failure(memory, self.command, failure, self._session)

    def _text(self, name: str) -> str:
        value = self._input.get(name)
        return value if isinstance(value, str) else ""

    def edit(self) -> str:
        """The lines that an edit takes out and puts in, and the names of what it is inside of."""
        old, new = self._text("old_string"), self._text("new_string") or self._text("content")
        parts = [line for line in old.splitlines() if line not in new]
        parts += [line for line in new.splitlines() if line not in old]
        with suppress(OSError, ValueError):
            text = Path(self._text("file_path")).read_text("utf-8") if old else ""
            line = text[: text.index(old)].count("\n")
            inside = (one for one in find_symbols(self.path, text) if one.start <= line < one.end)
            parts += [symbol.name for symbol in inside]
        return "\n".join(parts)

    def failure(self) -> str:
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
        commands = _ADDING.findall(self.command)
        added = [what for _, what in commands]
        old = self._text("old_string")
        new = "\n".join(map(self._text, ("new_string", "content")))
        is_manifest = bool(_MANIFEST.search(self.path))
        added += [
            line
            for line in new.splitlines()
            if line not in old and (is_manifest or _IMPORTING.search(line))
        ]
        words = [word for line in added for word in _NAME.findall(line)]
        used = [program for programs, _ in commands for program in programs.split()]
        used += [name for name in _USED.findall(new) if name not in old]
        return {name.lower() for name in used}.union(*map(_package_names, words))

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
    scope, _, last = name.rpartition("/")
    dotted = name.split(".")
    parts = [name, last, dotted[0], dotted[-1], last.partition("-")[0]]
    parts += [scope[1:]] if scope.startswith("@") else []
    parts += [_HUMP.split(part)[0] for part in parts]
    for part in dict.fromkeys((*parts, *(re.sub(r"[.-]?js$", "", part) for part in parts))):
        if len(part) >= 3 and not _NO_PACKAGE.match(part):
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


def _on_failure(
    memory: Memory, command: str, output: str, session: str
) -> Iterator[tuple[Item, Quote]]:
    """Yield the memory that is most probably on a failure, if it is probable enough."""
    found = failure_candidates(memory, command, output, session)
    yield from ((hit.item, quote_hit(hit)) for hit in _most_probable(found, _ON_FAILURE))


def _most_probable(
    found: Iterable[tuple[_T, tuple[float, ...]]], weights: tuple[float, ...]
) -> Iterator[_T]:
    """Yield the one with the highest score of a linear model, if that is above 0."""
    scored = [(weights[-1] + sum(map(mul, features, weights)), one) for one, features in found]
    yield from (one for score, one in sorted(scored, key=itemgetter(0))[-1:] if score > 0)


def failure_candidates(
    memory: Memory, command: str, output: str, session: str
) -> Iterator[tuple[Candidate, tuple[float, ...]]]:
    """Yield what is found on a failure, with its features.

    The higher of the cosines with the command and the lines that say what failed, and with the
    last lines; the rarity of the words that the output, and that the command has in common with
    it; the longest run of words in common.
    """
    last = " ".join(output.strip().splitlines()[-_MAX_LAST_LINES:])
    asked = (f"{command} {clean_error(output)}", _NUMBER.sub(" ", last))
    hits: dict[str, tuple[float, Candidate]] = {}
    for text in dict.fromkeys(redact(one[:_MAX_QUERY_CHARS]).text for one in asked):
        with suppress(Refused):
            answer = memory.recall(text, k=5, track=False, own_session=session or None)
            for hit in answer.hits:
                cosine = sum(one.value for one in hit.evidence if one.by == "channel.dense")
                if cosine >= hits.get(hit.item.id, (0.0, hit))[0]:
                    hits[hit.item.id] = cosine, hit
    output = output[-_MAX_OUTPUT_CHARS:]
    called, words = _content(memory, command), _WORD.findall(f"{command} {output}".lower())
    told = _content(memory, output) - called
    for cosine, hit in hits.values():
        own, content = _WORD.findall(hit.item.text.lower()), _content(memory, hit.item.text)
        run = SequenceMatcher(None, own, words, autojunk=False).find_longest_match().size
        rare = (math.sqrt(_rarity(memory, terms & content)) for terms in (told, called))
        yield hit, (cosine, *rare, min(run, _MAX_RUN))


def _content(memory: Memory, text: str) -> set[str]:
    """The index terms of a text that are no common words or numbers."""
    search = memory.store.search
    common = {term for word in search.words(text) if word.common for term in word.terms}
    return {
        term
        for term in search.terms(text)
        if term not in common and len(term) > 1 and not term.isdigit()
    }


def _rarity(memory: Memory, terms: set[str]) -> float:
    """How rare terms are in the memories, together: 1 for each that only one holds."""
    known = memory.store.search.statistics(terms)
    most = known.documents + 1
    rare = (math.log(most / (count + 0.5)) for count in known.frequencies.values())
    return max(0.0, sum(rare) / math.log(most / 1.5)) if most > 1 else 0.0


def _tied_to(memory: Memory, path: str, edit: str) -> Iterator[tuple[Item, Quote]]:
    """Yield the memory tied to a file that is most probably on an edit, if probable enough."""
    found = tied_candidates(memory, path, edit)
    yield from ((item, quote_item(item)) for item in _most_probable(found, _ON_EDIT))


def tied_candidates(
    memory: Memory, path: str, edit: str
) -> Iterator[tuple[Item, tuple[float, ...]]]:
    """Yield the memories tied to a file, with features.

    The cosine with the edit, the rarity of the words in common (those of the path do not
    count), and whether the edit names the symbol.
    """
    folder = path.rpartition("/")[0]
    found = [
        *memory.anchored(path, limit=_MAX_TIED),
        *(item for item in memory.browse(at=folder, limit=20) if folder in _names(item)),
    ]
    items = [*{item.id: item for item in found if item.level != "raw"}.values()][:_MAX_TIED]
    about = _content(memory, edit) - {*memory.store.search.terms(path)}
    cosines = _cosines(memory, _SEPARATOR.sub(" ", edit), [item.text for item in items])
    for item, cosine in zip(items, cosines, strict=True):
        shared = _rarity(memory, about & _content(memory, item.text))
        symbols = {name.partition("::")[2].rpartition(".")[2] for name in _names(item)} - {""}
        yield item, (cosine, math.sqrt(shared), any(symbol in edit for symbol in symbols))


def _cosines(memory: Memory, text: str, others: list[str]) -> list[float]:
    """The similarities of a text to others; without a model none."""
    if memory.embedder is not None and others and text.strip():
        with suppress(ModelError):
            about, *found = memory.embedder.embed([text[:_MAX_QUERY_CHARS], *others])
            return [float(about.vector @ one.vector) for one in found]
    return [0.0] * len(others)


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
            hits = sorted(answer.hits, key=lambda hit: hit.item.when, reverse=True)
            stands = ((hit, _stance(hit.item, name)) for hit in hits)
            newest, stance = next((one for one in stands if one[1]), (None, 0))
            if newest and stance < 0 and not asked_for(name):
                yield newest.item, quote_hit(newest)


@cache
def _mentions(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w@/-]){re.escape(name)}(?:\.?js)?(?![\w-]|/\w+[./])", re.IGNORECASE)


def _stance(item: Item, name: str) -> int:
    """What a memory says of a name: -1 against it, 1 for it, 0 that it is named or not."""
    for sentence in sentences(item.text) or [item.text]:
        for found in _mentions(name).finditer(sentence):
            before = _OTHER_PART.split(sentence[: found.start()])[-1]
            after = _NEXT_PART.split(sentence[found.end() :])[0]
            if _REJECTS_BEFORE.search(before) or _REJECTS_AFTER.search(after):
                return -1
    is_decided = item.kind in ("decision", *RULE_KINDS) or _ACCEPTS.search(item.text)
    return int(bool(is_decided and _mentions(name).search(item.text)))
