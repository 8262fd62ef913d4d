"""Aliases: the environment variables and config files of the emulated systems.

Each system lists its own in ``systems/NAME/aliases.toml``. They count only while its
profile is in use: ``EMBEDDING_MODEL`` means something to many programs. Variables override
the project's file, that overrides the user's file, that overrides the profile's values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bethink.config.changes import Change, Source, Verb, aliases_file
from bethink.config.paths import is_file
from bethink.core.dataclass import dataclass, field
from bethink.core.small_files import read_small_file, refuse_extremes
from bethink.core.toml import parse_toml
from bethink.errors import BadSetting

_Row = Mapping[str, Any]  # of a TOML file that comes with Bethink
_BOOLEAN_WORDS = ("0", "1", "false", "true", "no", "yes", "off", "on")


@dataclass(frozen=True, slots=True)
class Alias:
    """One foreign name: a ``variable``, a dotted ``key`` of a config file, or both.

    ``needs`` names a key that must be true for it to count; ``unless`` names one that
    disables it. The ``row`` of the file says which values it takes and what they mean.
    """

    profile: str
    targets: tuple[str, ...] = ()
    variable: str = ""
    key: str = ""
    verb: Verb = "set"
    needs: str = ""
    unless: str = ""
    row: _Row = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """The name by which other rows refer to it."""
        return self.key or self.variable

    def parse(self, raw: object, where: str) -> object:
        """The value that a variable or file gives; refused where it does not fit."""
        try:
            return self._parse(raw)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadSetting(
                f"{where} is {raw!r:.80}, but must be {self._expected()}",
                remedy="use a valid value, or omit it to use the profile's own",
            ) from error

    def _parse(self, raw: object) -> object:
        match self.row["type"]:
            case "number" | "integer" as kind:
                return self._number(raw, whole=kind == "integer")
            case "word":
                words = [*self.row["values"]]
                return words[words.index(str(raw).lower())]
            case "boolean" if isinstance(raw, bool):
                return raw
            case "boolean":
                return _BOOLEAN_WORDS.index(str(raw).lower()) % 2 == 1
        if isinstance(raw, str) and raw.strip() and raw.isprintable():
            return raw.strip()
        raise ValueError

    def _number(self, raw: object, *, whole: bool) -> float:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise TypeError
        value, low, high = float(raw), *self._range()
        if not (math.isfinite(value) and low <= value <= high) or (whole and value != int(value)):
            raise ValueError
        return int(value) if whole else value

    def _range(self) -> tuple[float, float]:
        return self.row.get("low", 0), self.row.get("high", math.inf)

    def _expected(self) -> str:
        low, high = self._range()
        within = f"from {low:,} to {high:,}" if high < math.inf else f"of {low:,} or more"
        return {
            "number": f"a number {within}",
            "integer": f"a whole number {within}",
            "word": f"one of {', '.join(self.row.get('values', ()))}",
            "boolean": "true or false",
            "text": "text on one line",
        }[self.row["type"]]

    def convert(self, value: object) -> object:
        """Our value for one of theirs: by a table, a template or a divisor."""
        name = str(value).lower() if isinstance(value, bool) else value
        if name in (values := self.row.get("values", {})):
            ours = values[name]
            return tuple(ours) if isinstance(ours, list) else ours
        if "template" in self.row:
            return self.row["template"].replace("{}", value)
        return value / self.row["divide"] if "divide" in self.row else value


@cache
def aliases_of(profile: str) -> tuple[Alias, ...]:
    """The names that the system of a profile has for our values; read on first use."""
    named = ("variable", "key", "verb", "needs", "unless")
    return tuple(
        Alias(
            profile,
            tuple(row.get("targets", ())),
            row=row,
            **{name: row[name] for name in named if name in row},
        )
        for row in _read_table(profile).get("alias", ())
    )


@cache
def config_files_of(profile: str) -> tuple[tuple[Source, str], ...]:
    """The config files of a profile's system: where each is looked for, and its path there."""
    return tuple((row["source"], row["path"]) for row in _read_table(profile).get("files", ()))


@cache
def _read_table(profile: str) -> _Row:
    path = aliases_file(profile)
    return {} if path is None else parse_toml(path.read_text(encoding="utf-8"))


# A checked value, its name where it was given, and where that is.
_Value = tuple[object, str, Source]


def find_changes(
    profile: str, variables: Mapping[str, str], folders: Mapping[Source, Path | None]
) -> tuple[Change, ...]:
    """All changes to a profile, and to settings while that profile is in use."""
    values = dict(_collect_values(profile, variables, folders))
    by_name = {alias.name: value for alias, (value, _, _) in values.items()}
    return tuple(
        Change(alias.verb, target, alias.convert(values[alias][0]), *values[alias][1:])
        for alias in aliases_of(profile)
        if alias in values
        and (not alias.needs or by_name.get(alias.needs))
        and alias.unless not in by_name
        for target in alias.targets
    )


def _collect_values(
    profile: str, variables: Mapping[str, str], folders: Mapping[Source, Path | None]
) -> Iterator[tuple[Alias, _Value]]:
    """The checked value of each of the profile's names, highest priority last."""
    rows = aliases_of(profile)
    for source, relative_path in config_files_of(profile):
        root = folders[source]
        if root is None or not is_file(path := root / relative_path):
            continue
        document = _load_json(path)
        for alias in rows:
            if (value := _lookup(document, alias)) is not None:
                where = f"{path}: {alias.key}"
                yield alias, (alias.parse(value, where), where, source)
    for alias in rows:
        if alias.variable in variables:
            value = alias.parse(variables[alias.variable].strip(), alias.variable)
            yield alias, (value, alias.variable, "environment")


def _load_json(path: Path) -> object:
    try:
        found: object = json.loads(read_small_file(path))
        refuse_extremes(found)
    except ValueError as error:
        raise BadSetting(f"{path}: not valid JSON: {error}") from error
    except RecursionError as error:
        raise BadSetting(f"{path}: nested too deeply") from error
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror}") from error
    return found


def _lookup(document: object, alias: Alias) -> object:
    """The value under the alias's key in a file, optionally nested below the system's name."""
    if not alias.key:
        return None
    found = document
    if isinstance(document, dict) and isinstance(document.get(alias.profile), dict):
        found = document[alias.profile]
    for part in alias.key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found
