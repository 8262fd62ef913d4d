"""Aliases: the environment variables and config files of the emulated systems.

Each system lists its own in ``systems/NAME/aliases.toml``. They count only while its
profile is in use: ``EMBEDDING_MODEL`` means something to many programs. Variables override
the project's file, that overrides the user's file, that overrides the profile's values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from bethink.config.paths import is_file
from bethink.core.dataclass import dataclass
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadSetting

Source = Literal["user file", "project file", "environment"]
# Effect of a value: set a profile's number, put a stage into a slot, remove channels, set a
# setting of ours, or only check it.
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
        lambda raw: _require_in_range(_to_float(raw), low, high),
    )


def int_between(low: int, high: float = math.inf) -> ValueType:
    """A whole number within limits."""
    return ValueType(
        f"a whole number {_describe_range(low, high)}", lambda raw: _parse_int(raw, low, high)
    )


def one_of(*words: str) -> ValueType:
    """One of a fixed set of words."""
    return ValueType(f"one of {', '.join(words)}", lambda raw: words[words.index(str(raw).lower())])


def _parse_bool(raw: Any) -> bool:
    return raw if isinstance(raw, bool) else _BOOLEAN_WORDS.index(str(raw).lower()) % 2 == 1


def _parse_text(raw: Any) -> str:
    if isinstance(raw, str) and raw.strip() and raw.isprintable():
        return raw.strip()
    raise ValueError


def _describe_range(low: float, high: float) -> str:
    return f"from {low:,} to {high:,}" if high < math.inf else f"of {low:,} or more"


def _to_float(raw: Any) -> float:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise TypeError
    return float(raw)


def _require_in_range(value: float, low: float, high: float) -> float:
    if math.isfinite(value) and low <= value <= high:
        return value
    raise ValueError


def _parse_int(raw: Any, low: float, high: float) -> int:
    value = _require_in_range(_to_float(raw), low, high)
    if value != int(value):
        raise ValueError
    return int(value)


_BOOLEAN_WORDS = ("0", "1", "false", "true", "no", "yes", "off", "on")
BOOLEAN = ValueType("true or false", _parse_bool)
TEXT = ValueType("text on one line", _parse_text)


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


@cache
def aliases_of(profile: str) -> tuple[Alias, ...]:
    """The names that the system of a profile has for our values; read on first use."""
    return tuple(_build_alias(profile, row) for row in _read_table(profile).get("alias", ()))


@cache
def config_files_of(profile: str) -> tuple[tuple[Source, str], ...]:
    """The config files of a profile's system: where each is looked for, and its path there."""
    return tuple((row["source"], row["path"]) for row in _read_table(profile).get("files", ()))


def _read_table(profile: str) -> dict[str, Any]:
    if profile not in _VARIABLES:
        return {}
    import tomllib  # start-up time: most recalls use the default profile

    path = Path(__file__).parent.parent / "systems" / profile / "aliases.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _build_alias(profile: str, row: Mapping[str, Any]) -> Alias:
    plain = {name: row[name] for name in _PLAIN_FIELDS if name in row}
    targets = tuple(row.get("targets", ()))
    return Alias(profile, _value_type(row), targets, means=_conversion(row), **plain)


def _value_type(row: Mapping[str, Any]) -> ValueType:
    low, high = row.get("low", 0), row.get("high", math.inf)
    match row["type"]:
        case "number":
            return float_between(low, high)
        case "integer":
            return int_between(low, high)
        case "word":
            return one_of(*row["values"])
        case "boolean":
            return BOOLEAN
        case _:
            return TEXT


def _conversion(row: Mapping[str, Any]) -> Callable[[Any], Any]:
    """The function from a value of theirs to ours: by a table, a template or a divisor."""
    values = {
        name: tuple(our_value) if isinstance(our_value, list) else our_value
        for name, our_value in row.get("values", {}).items()
    }

    def convert(value: Any) -> Any:
        name = str(value).lower() if isinstance(value, bool) else value
        if name in values:
            return values[name]
        if "template" in row:
            return row["template"].replace("{}", value)
        return value / row["divide"] if "divide" in row else value

    return convert


_PLAIN_FIELDS = ("variable", "key", "verb", "needs", "unless")
# The variables of each system that has names of its own. They are also in its aliases.toml,
# which a process does not read unless the profile is in use; a test compares the two.
_VARIABLES = {
    "remind": """REMIND_HYBRID_KEYWORD_WEIGHT REMIND_RECALL_INITIAL_CANDIDATES
        REMIND_MIN_ACTIVATION REMIND_DECAY_INTERVAL REMIND_DECAY_RATE REMIND_RERANKING_ENABLED
        REMIND_RERANKING_MODEL REMIND_CLI_RECALL_WORKER_IDLE_SECONDS""",
    "abmind": """MEMORY_SEARCH_MODE EMBEDDING_ENABLED EMBEDDING_MODEL
        EMBEDDING_SIMILARITY_THRESHOLD RECALL_DECAY_DAYS RECALL_DECAY_FLOOR
        RECALL_EMOTION_BOOST SIGNATURE_BITS""",
    "siftcoder": "",
    "linksee": "LINKSEE_MEMORY_DIR",
}
SYSTEMS_WITH_ALIASES = tuple(_VARIABLES)
VARIABLES = frozenset(name for names in _VARIABLES.values() for name in names.split())


@dataclass(frozen=True, slots=True)
class ForeignConfig:
    """Where foreign names are looked up: the variables that are set, the home, the project."""

    variables: Mapping[str, str]
    home: Path | None = None
    project: Path | None = None

    @classmethod
    def from_environment(
        cls, env: Mapping[str, str], home: Path | None, project: Path | None
    ) -> ForeignConfig:
        """Build it from the variables of an environment that are known aliases."""
        return cls({name: env[name] for name in VARIABLES if env.get(name)}, home, project)

    def changes(self, profile: str) -> tuple[Change, ...]:
        """All changes to a profile, and to settings while that profile is in use."""
        return tuple(_resolve_changes(profile, dict(self._collect_values(profile))))

    def _collect_values(self, profile: str) -> Iterator[tuple[Alias, tuple[Any, str, Source]]]:
        """The checked value of each of the profile's names, highest priority last."""
        rows = aliases_of(profile)
        for source, relative_path in config_files_of(profile):
            root = self.home if source == "user file" else self.project
            if root is None or not is_file(path := root / relative_path):
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
    profile: str, values: Mapping[Alias, tuple[Any, str, Source]]
) -> Iterator[Change]:
    by_name = {alias.name: value for alias, (value, _, _) in values.items()}
    for alias in aliases_of(profile):
        if alias not in values:
            continue
        if (alias.needs and not by_name.get(alias.needs)) or alias.unless in by_name:
            continue
        value, where, source = values[alias]
        for target in alias.targets:
            yield Change(alias.verb, target, alias.means(value), where, source)


def _parse_value(kind: ValueType, value: Any, where: str) -> Any:
    try:
        return kind.read(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadSetting(
            f"{where} is {value!r}, but must be {kind.expected}",
            remedy="use a valid value, or omit it to use the profile's own",
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
        removed = change.value
        table[slot] = [part for part in table.get(slot, []) if not _has_name(part, *removed)]
    elif change.verb == "use":
        table[slot] = [{"use": change.value}] if change.value else []
    elif change.verb == "set":
        *part, field = rest
        target_table = (
            _find_part(table.get(slot, []), part[0]) if part else table.setdefault(slot, {})
        )
        if target_table is None:
            raise BadSetting(
                f"{change.where} sets {change.target}, which this profile does not have",
                remedy="omit it, or add that part to the profile",
            )
        target_table[field] = change.value


def _find_part(parts: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    return next((part for part in parts if _has_name(part, name)), None)


def _has_name(part: dict[str, Any], *names: str) -> bool:
    """Whether a part has one of these names; "sf" also matches "sf.porter"."""
    own = part.get("name", part["use"])
    return any(own == name or own.startswith(f"{name}.") for name in names)
