"""Aliases of five other systems: their environment variables and config files.

``ALIASES`` is complete. A name counts only while its system's profile is in use:
``EMBEDDING_MODEL`` means something to many programs. Their variables override their
project's file, that overrides their user's file, that overrides the profile's values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bethink.config.paths import is_file
from bethink.errors import BadSetting

Source = Literal["user file", "project file", "environment"]
# What becomes of a value: a number of the profile, a stage put into a slot, channels left
# out, one of our own settings, or nothing but a check.
Verb = Literal["set", "use", "without", "setting", "check"]


class Change(NamedTuple):
    """One change made by a foreign variable or config file; ``where`` is its name there."""

    verb: Verb
    target: str
    value: Any
    where: str
    source: Source


class ValueType(NamedTuple):
    """A type of value: its description, and a parser that raises ValueError if it does not fit."""

    expected: str
    read: Callable[[Any], Any]


def float_between(low: float, high: float = math.inf) -> ValueType:
    """A finite number within limits."""
    return ValueType(
        f"a number {_describe_range(low, high)}",
        lambda given: _require_in_range(_to_float(given), low, high),
    )


def int_between(low: int, high: float = math.inf) -> ValueType:
    """A whole number within limits."""
    return ValueType(
        f"a whole number {_describe_range(low, high)}", lambda given: _parse_int(given, low, high)
    )


def one_of(*words: str) -> ValueType:
    """One of a fixed set of words."""
    return ValueType(
        f"one of {', '.join(words)}", lambda given: words[words.index(str(given).lower())]
    )


def _parse_bool(given: Any) -> bool:
    return given if isinstance(given, bool) else _BOOLEAN_WORDS.index(str(given).lower()) % 2 == 1


def _parse_text(given: Any) -> str:
    if isinstance(given, str) and given.strip() and given.isprintable():
        return given.strip()
    raise ValueError


def _describe_range(low: float, high: float) -> str:
    return f"from {low:,} to {high:,}" if high < math.inf else f"of {low:,} or more"


def _to_float(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise TypeError
    return float(given)


def _require_in_range(value: float, low: float, high: float) -> float:
    if math.isfinite(value) and low <= value <= high:
        return value
    raise ValueError


def _parse_int(given: Any, low: float, high: float) -> int:
    value = _require_in_range(_to_float(given), low, high)
    if value != int(value):
        raise ValueError
    return int(value)


_BOOLEAN_WORDS = ("0", "1", "false", "true", "no", "yes", "off", "on")
BOOLEAN = ValueType("true or false", _parse_bool)
TEXT = ValueType("text on one line", _parse_text)
FRACTION = float_between(0, 1)


def _identity(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Alias:
    """One foreign name: a ``variable``, a dotted ``key`` of a config file, or both.

    ``means`` converts the value to ours. ``needs`` names a key that must be true for it to
    count; ``unless`` names one that disables it.
    """

    profile: str
    kind: ValueType
    targets: tuple[str, ...] = ()
    variable: str = ""
    key: str = ""
    verb: Verb = "set"
    means: Callable[[Any], Any] = _identity
    needs: str = ""
    unless: str = ""

    @property
    def name(self) -> str:
        """The name by which other rows refer to it."""
        return self.key or self.variable


def _remind(key: str, kind: ValueType, *targets: str, **more: Any) -> Alias:
    return Alias("remind", kind, targets, f"REMIND_{key.upper()}", key, **more)


def _abmind(variable: str, kind: ValueType, *targets: str, **more: Any) -> Alias:
    return Alias("abmind", kind, targets, variable, **more)


def _siftcoder(key: str, kind: ValueType, *targets: str, **more: Any) -> Alias:
    return Alias("siftcoder", kind, targets, key=f"memory.{key}", **more)


# The model of their page is the one we call by no other name than what it is.
_MS_MARCO_MODEL = "cross-encoder/ms-marco-MiniLM-L-6-v2"
_DAY_MS = 24 * 60 * 60 * 1000.0
_DISABLED_CHANNELS = {
    "hybrid": (),
    "fts": ("se", "ss", "s6", "s8"),
    "signature": ("sf", "se", "s6", "s8"),
}

ALIASES: tuple[Alias, ...] = (
    _remind("hybrid_keyword_weight", FRACTION, "fuse.keyword_weight"),
    _remind("recall_initial_candidates", int_between(1, 1000), "channels.concepts.depth"),
    _remind("min_activation", FRACTION, "gate.min_activation.min_score"),
    _remind("decay_interval", int_between(0), "track.decay_interval"),
    _remind("decay_rate", FRACTION, "track.decay_rate"),
    _remind(
        "reranking_enabled", BOOLEAN, "reranker", verb="setting",
        means=lambda on: "cross-encoder" if on else "none",
    ),
    _remind(
        "reranking_model", TEXT, "reranker", verb="setting", needs="reranking_enabled",
        means=lambda model: "cross-encoder" if model == _MS_MARCO_MODEL else f"cross-encoder:{model}",
    ),
    _abmind(
        "MEMORY_SEARCH_MODE", one_of(*_DISABLED_CHANNELS), "channels", verb="without", means=_DISABLED_CHANNELS.get
    ),
    _abmind(
        "EMBEDDING_ENABLED", BOOLEAN, "channels", verb="without",
        means=lambda on: () if on else ("se",),
    ),
    _abmind(
        "EMBEDDING_MODEL", TEXT, "embedder", verb="setting", needs="EMBEDDING_ENABLED",
        means=lambda model: f"ollama:{model}",
    ),
    _abmind("EMBEDDING_SIMILARITY_THRESHOLD", float_between(-1, 1), "channels.se.min_cosine"),
    _abmind("RECALL_DECAY_DAYS", float_between(1), "adjust.fading.days"),
    _abmind("RECALL_DECAY_FLOOR", FRACTION, "adjust.fading.floor"),
    _abmind("RECALL_EMOTION_BOOST", float_between(0, 10), "adjust.fading.emotion"),
    _abmind("SIGNATURE_BITS", int_between(256, 256), verb="check"),
    _siftcoder("retrieval.rrfK", float_between(0), "fuse.k"),
    _siftcoder(
        "retrieval.candidateK", int_between(1, 1000), "channels.lexical.depth", "channels.dense.depth"
    ),
    _siftcoder(
        "retrieval.candidatePool", int_between(1, 1000), "channels.lexical.depth", "channels.dense.depth"
    ),
    _siftcoder("retrieval.topK", int_between(1, 200), "budget.k"),
    _siftcoder("retrieval.bm25Weight", float_between(0, 1000), "channels.lexical.weight"),
    _siftcoder("retrieval.vectorWeight", float_between(0, 1000), "channels.dense.weight"),
    _siftcoder(
        "retrieval.rerank", BOOLEAN, "rerank", verb="use", means=lambda on: "overlap" if on else ""
    ),
    _siftcoder("decay.tauMs", float_between(0), "adjust.decay.tau_days", means=lambda ms: ms / _DAY_MS),
    _siftcoder(
        "decay.halfLifeDays", float_between(0.001), "adjust.decay.half_life_days",
        unless="memory.decay.tauMs",
    ),
    Alias("linksee", TEXT, ("data_dir",), "LINKSEE_MEMORY_DIR", verb="setting"),
)  # fmt: skip

# Their config files, the strongest last. Only numbers of the walk are taken from a project's.
CONFIG_FILES: Mapping[str, tuple[tuple[Source, str], ...]] = {
    "remind": (("user file", ".remind/remind.config.json"),),
    "siftcoder": (
        ("user file", ".siftcoder/v3/config.json"),
        ("project file", ".siftcoder/config.json"),
    ),
}
_VARIABLES = frozenset(alias.variable for alias in ALIASES) - {""}


@dataclass(frozen=True, slots=True)
class ForeignConfig:
    """Where foreign names are looked up: the variables that are set, the home, the project."""

    variables: Mapping[str, str]
    home: Path | None = None
    project: Path | None = None

    @classmethod
    def of(cls, env: Mapping[str, str], home: Path | None, project: Path | None) -> ForeignConfig:
        """Build it from the variables of an environment that are known aliases."""
        return cls({name: env[name] for name in _VARIABLES if env.get(name)}, home, project)

    def changes(self, profile: str) -> tuple[Change, ...]:
        """All changes to a profile, and to settings while that profile is in use."""
        return tuple(_resolve_changes(profile, dict(self._collect_values(profile))))

    def _collect_values(self, profile: str) -> Iterator[tuple[Alias, tuple[Any, str, Source]]]:
        """The checked value of each of the profile's names, highest priority last."""
        rows = [alias for alias in ALIASES if alias.profile == profile]
        for source, place in CONFIG_FILES.get(profile, ()):
            root = self.home if source == "user file" else self.project
            if root is None or not is_file(path := root / place):
                continue
            document = _load_json(path)
            for alias in rows:
                if (value := _lookup(document, alias)) is not None:
                    where = f"{path}: {alias.key}"
                    yield alias, (_parse_value(alias.kind, value, where), where, source)
        for alias in rows:
            if alias.variable in self.variables:
                value = _parse_value(
                    alias.kind, self.variables[alias.variable].strip(), alias.variable
                )
                yield alias, (value, alias.variable, "environment")


def _resolve_changes(
    profile: str, given: Mapping[Alias, tuple[Any, str, Source]]
) -> Iterator[Change]:
    named = {alias.name: value for alias, (value, _, _) in given.items()}
    for alias in ALIASES:
        if alias.profile != profile or alias not in given:
            continue
        if (alias.needs and not named.get(alias.needs)) or alias.unless in named:
            continue
        value, where, source = given[alias]
        for target in alias.targets:
            yield Change(alias.verb, target, alias.means(value), where, source)


def _parse_value(kind: ValueType, value: Any, where: str) -> Any:
    try:
        return kind.read(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadSetting(
            f"{where} is {value!r}, but must be {kind.expected}",
            remedy="change it, or leave it out: then the profile's own holds",
        ) from error


def _load_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise BadSetting(f"{path}: not valid JSON: {error}") from error
    except RecursionError as error:
        raise BadSetting(f"{path}: nested too deeply") from error
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror}") from error


def _lookup(document: Any, alias: Alias) -> Any:
    """The value under the alias's key in a file, optionally nested below the system's name."""
    if not alias.key:
        return None
    found = document
    if isinstance(document, dict) and isinstance(document.get(alias.profile), dict):
        found = document[alias.profile]
    for part in alias.key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def apply_change(table: dict[str, Any], change: Change) -> None:
    """Apply a change to a profile's table, as if its file had said so."""
    slot, *rest = change.target.split(".")
    if change.verb == "without":
        gone = change.value
        table[slot] = [part for part in table.get(slot, []) if not _has_name(part, *gone)]
    elif change.verb == "use":
        table[slot] = [{"use": change.value}] if change.value else []
    elif change.verb == "set":
        *part, field = rest
        inside = _find_part(table.get(slot, []), part[0]) if part else table.setdefault(slot, {})
        if inside is None:
            raise BadSetting(
                f"{change.where} sets {change.target}, which this profile does not have",
                remedy="leave it out, or put that part into the profile",
            )
        inside[field] = change.value


def _find_part(parts: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    return next((part for part in parts if _has_name(part, name)), None)


def _has_name(part: dict[str, Any], *names: str) -> bool:
    """Whether a part has one of these names; "sf" also matches "sf.porter"."""
    own = part.get("name", part["use"])
    return any(own == name or own.startswith(f"{name}.") for name in names)
