"""The five systems' own names for what can be set: their variables, their config files.

``ALIASES`` is all there is. A name counts only while its system's profile is in use:
``EMBEDDING_MODEL`` means something to many programs. Their variables win over their
project's file, that over their user's file, that over the profile's own numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from recollect.errors import BadSetting
from recollect.places import is_file

Source = Literal["user file", "project file", "environment"]
# What becomes of a value: a number of the profile, a stage put into a slot, channels left
# out, one of our own settings, or nothing but a check.
Verb = Literal["set", "use", "without", "setting", "check"]


class Change(NamedTuple):
    """One thing that somebody's variable or file changes; ``where`` is its name there."""

    verb: Verb
    target: str
    value: Any
    where: str
    source: Source


class Kind(NamedTuple):
    """A kind of value: what it must be, in words, and how it is read; ValueError if it is not."""

    expected: str
    read: Callable[[Any], Any]


def number(low: float, high: float = math.inf) -> Kind:
    """A finite number within limits."""
    return Kind(f"a number {_limits(low, high)}", lambda given: _within(_float(given), low, high))


def whole(low: int, high: float = math.inf) -> Kind:
    """A whole number within limits."""
    return Kind(f"a whole number {_limits(low, high)}", lambda given: _whole(given, low, high))


def one_of(*words: str) -> Kind:
    """One of some words."""
    return Kind(f"one of {', '.join(words)}", lambda given: words[words.index(str(given).lower())])


def _truth(given: Any) -> bool:
    return given if isinstance(given, bool) else _WORDS.index(str(given).lower()) % 2 == 1


def _text(given: Any) -> str:
    if isinstance(given, str) and given.strip() and given.isprintable():
        return given.strip()
    raise ValueError


def _limits(low: float, high: float) -> str:
    return f"from {low:,} to {high:,}" if high < math.inf else f"of {low:,} or more"


def _float(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise TypeError
    return float(given)


def _within(value: float, low: float, high: float) -> float:
    if math.isfinite(value) and low <= value <= high:
        return value
    raise ValueError


def _whole(given: Any, low: float, high: float) -> int:
    value = _within(_float(given), low, high)
    if value != int(value):
        raise ValueError
    return int(value)


_WORDS = ("0", "1", "false", "true", "no", "yes", "off", "on")
TRUTH = Kind("true or false", _truth)
TEXT = Kind("text on one line", _text)
SHARE = number(0, 1)


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Alias:
    """One of their names: a ``variable``, a dotted ``key`` of their config file, or both.

    ``means`` turns the value into ours. ``needs`` names a key that must be true for it to
    count, ``unless`` one that makes it count for nothing.
    """

    profile: str
    kind: Kind
    targets: tuple[str, ...] = ()
    variable: str = ""
    key: str = ""
    verb: Verb = "set"
    means: Callable[[Any], Any] = _same
    needs: str = ""
    unless: str = ""

    @property
    def name(self) -> str:
        """What other rows call it."""
        return self.key or self.variable


def _remind(key: str, kind: Kind, *targets: str, **more: Any) -> Alias:
    return Alias("remind", kind, targets, f"REMIND_{key.upper()}", key, **more)


def _abmind(variable: str, kind: Kind, *targets: str, **more: Any) -> Alias:
    return Alias("abmind", kind, targets, variable, **more)


def _siftcoder(key: str, kind: Kind, *targets: str, **more: Any) -> Alias:
    return Alias("siftcoder", kind, targets, key=f"memory.{key}", **more)


# The model of their page is the one we call by no other name than what it is.
_MARCO = "cross-encoder/ms-marco-MiniLM-L-6-v2"
_DAY_MS = 24 * 60 * 60 * 1000.0
_LEFT_OUT = {"hybrid": (), "fts": ("se", "ss", "s6", "s8"), "signature": ("sf", "se", "s6", "s8")}

ALIASES: tuple[Alias, ...] = (
    _remind("hybrid_keyword_weight", SHARE, "fuse.keyword_weight"),
    _remind("recall_initial_candidates", whole(1, 1000), "channels.concepts.depth"),
    _remind("min_activation", SHARE, "gate.min_activation.min_score"),
    _remind("decay_interval", whole(0), "track.decay_interval"),
    _remind("decay_rate", SHARE, "track.decay_rate"),
    _remind(
        "reranking_enabled", TRUTH, "reranker", verb="setting",
        means=lambda on: "cross-encoder" if on else "none",
    ),
    _remind(
        "reranking_model", TEXT, "reranker", verb="setting", needs="reranking_enabled",
        means=lambda model: "cross-encoder" if model == _MARCO else f"cross-encoder:{model}",
    ),
    _abmind(
        "MEMORY_SEARCH_MODE", one_of(*_LEFT_OUT), "channels", verb="without", means=_LEFT_OUT.get
    ),
    _abmind(
        "EMBEDDING_ENABLED", TRUTH, "channels", verb="without",
        means=lambda on: () if on else ("se",),
    ),
    _abmind(
        "EMBEDDING_MODEL", TEXT, "embedder", verb="setting", needs="EMBEDDING_ENABLED",
        means=lambda model: f"ollama:{model}",
    ),
    _abmind("EMBEDDING_SIMILARITY_THRESHOLD", number(-1, 1), "channels.se.min_cosine"),
    _abmind("RECALL_DECAY_DAYS", number(1), "adjust.fading.days"),
    _abmind("RECALL_DECAY_FLOOR", SHARE, "adjust.fading.floor"),
    _abmind("RECALL_EMOTION_BOOST", number(0, 10), "adjust.fading.emotion"),
    _abmind("SIGNATURE_BITS", whole(256, 256), verb="check"),
    _siftcoder("retrieval.rrfK", number(0), "fuse.k"),
    _siftcoder(
        "retrieval.candidateK", whole(1, 1000), "channels.lexical.depth", "channels.dense.depth"
    ),
    _siftcoder(
        "retrieval.candidatePool", whole(1, 1000), "channels.lexical.depth", "channels.dense.depth"
    ),
    _siftcoder("retrieval.topK", whole(1, 200), "budget.k"),
    _siftcoder("retrieval.bm25Weight", number(0, 1000), "channels.lexical.weight"),
    _siftcoder("retrieval.vectorWeight", number(0, 1000), "channels.dense.weight"),
    _siftcoder(
        "retrieval.rerank", TRUTH, "rerank", verb="use", means=lambda on: "overlap" if on else ""
    ),
    _siftcoder("decay.tauMs", number(0), "adjust.decay.tau_days", means=lambda ms: ms / _DAY_MS),
    _siftcoder(
        "decay.halfLifeDays", number(0.001), "adjust.decay.half_life_days",
        unless="memory.decay.tauMs",
    ),
    Alias("linksee", TEXT, ("data_dir",), "LINKSEE_MEMORY_DIR", verb="setting"),
)  # fmt: skip

# Their config files, the strongest last. Only numbers of the walk are taken from a project's.
FILES: Mapping[str, tuple[tuple[Source, str], ...]] = {
    "remind": (("user file", ".remind/remind.config.json"),),
    "siftcoder": (
        ("user file", ".siftcoder/v3/config.json"),
        ("project file", ".siftcoder/config.json"),
    ),
}
_VARIABLES = frozenset(alias.variable for alias in ALIASES) - {""}


@dataclass(frozen=True, slots=True)
class Theirs:
    """Where their names are looked up: the variables that are set, the home, the project."""

    variables: Mapping[str, str]
    home: Path | None = None
    project: Path | None = None

    @classmethod
    def of(cls, env: Mapping[str, str], home: Path | None, project: Path | None) -> Theirs:
        """What of an environment can matter."""
        return cls({name: env[name] for name in _VARIABLES if env.get(name)}, home, project)

    def changes(self, profile: str) -> tuple[Change, ...]:
        """All that they change about a profile, and about settings while it is in use."""
        return tuple(_changes(profile, dict(self._given(profile))))

    def _given(self, profile: str) -> Iterator[tuple[Alias, tuple[Any, str, Source]]]:
        """What is given for each of the profile's names, the strongest last, all checked."""
        rows = [alias for alias in ALIASES if alias.profile == profile]
        for source, place in FILES.get(profile, ()):
            root = self.home if source == "user file" else self.project
            if root is None or not is_file(path := root / place):
                continue
            document = _document(path)
            for alias in rows:
                if (value := _at(document, alias)) is not None:
                    where = f"{path}: {alias.key}"
                    yield alias, (_read(alias.kind, value, where), where, source)
        for alias in rows:
            if alias.variable in self.variables:
                value = _read(alias.kind, self.variables[alias.variable].strip(), alias.variable)
                yield alias, (value, alias.variable, "environment")


def _changes(profile: str, given: Mapping[Alias, tuple[Any, str, Source]]) -> Iterator[Change]:
    named = {alias.name: value for alias, (value, _, _) in given.items()}
    for alias in ALIASES:
        if alias.profile != profile or alias not in given:
            continue
        if (alias.needs and not named.get(alias.needs)) or alias.unless in named:
            continue
        value, where, source = given[alias]
        for target in alias.targets:
            yield Change(alias.verb, target, alias.means(value), where, source)


def _read(kind: Kind, value: Any, where: str) -> Any:
    try:
        return kind.read(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadSetting(
            f"{where} is {value!r}, but must be {kind.expected}",
            remedy="change it, or leave it out: then the profile's own holds",
        ) from error


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise BadSetting(f"{path}: not valid JSON: {error}") from error
    except RecursionError as error:
        raise BadSetting(f"{path}: nested too deeply") from error
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror}") from error


def _at(document: Any, alias: Alias) -> Any:
    """What a file says under the alias's key, perhaps below the system's own name."""
    if not alias.key:
        return None
    found = document
    if isinstance(document, dict) and isinstance(document.get(alias.profile), dict):
        found = document[alias.profile]
    for part in alias.key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def apply_change(table: dict[str, Any], change: Change) -> None:
    """Makes a change in a profile's table, as its file would have it."""
    slot, *rest = change.target.split(".")
    if change.verb == "without":
        gone = change.value
        table[slot] = [part for part in table.get(slot, []) if not _called(part, *gone)]
    elif change.verb == "use":
        table[slot] = [{"use": change.value}] if change.value else []
    elif change.verb == "set":
        *part, field = rest
        inside = _part_of(table.get(slot, []), part[0]) if part else table.setdefault(slot, {})
        if inside is None:
            raise BadSetting(
                f"{change.where} sets {change.target}, which this profile does not have",
                remedy="leave it out, or put that part into the profile",
            )
        inside[field] = change.value


def _part_of(parts: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    return next((part for part in parts if _called(part, name)), None)


def _called(part: dict[str, Any], *names: str) -> bool:
    """Whether a part has one of these names; "sf" is the name of "sf.porter" too."""
    own = part.get("name", part["use"])
    return any(own == name or own.startswith(f"{name}.") for name in names)
