"""What other systems configure: their variables and files change our profiles and settings.

A system's own names are in ``systems/NAME/aliases.toml`` and count only while its profile
is in use. `bethink.config.aliases` reads them, and is not loaded for any other profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from bethink.config.paths import is_file
from bethink.core.dataclass import dataclass
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadSetting

Source = Literal["user file", "project file", "environment"]
# Effect of a value: set a profile's number, put a stage into a slot, remove channels, set a
# setting of ours, or only check it.
Verb = Literal["set", "use", "without", "setting", "check"]
SYSTEMS = Path(__file__).parent.parent / "systems"


class Change(NamedTuple):
    """One change made by a foreign variable or config file; ``where`` is its name there."""

    verb: Verb
    target: str
    value: Any
    where: str
    source: Source


def aliases_file(profile: str) -> Path | None:
    """The file of the names that the system of a profile has; None for any other profile."""
    # A name that is a path would lead to a stranger's file.
    path = SYSTEMS / profile / "aliases.toml"
    return path if profile.isidentifier() and is_file(path) else None


def apply_change(table: Json, change: Change) -> None:
    """Apply a change to a profile's table, as if its file had said so."""
    slot, *rest = change.target.split(".")
    if change.verb == "without":
        table[slot] = [part for part in table.get(slot, []) if not _has_name(part, *change.value)]
    elif change.verb == "use":
        table[slot] = [{"use": change.value}] if change.value else []
    elif change.verb == "set":
        *part, field = rest
        found = table.setdefault(slot, {}) if not part else None
        if part:
            parts = (one for one in table.get(slot, []) if _has_name(one, part[0]))
            found = next(parts, None)
        if found is None:
            raise BadSetting(
                f"{change.where} sets {change.target}, which this profile does not have",
                remedy="omit it, or add that part to the profile",
            )
        found[field] = change.value


def _has_name(part: dict[str, str], *names: str) -> bool:
    """Whether a part has one of these names; "sf" also matches "sf.porter"."""
    own = part.get("name", part["use"])
    return any(own == name or own.startswith(f"{name}.") for name in names)


@cache
def foreign_variables() -> frozenset[str]:
    """The variables of all systems: read from one list, not from each system's file."""
    return frozenset((SYSTEMS / "variables.txt").read_text(encoding="utf-8").split())


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
        return cls(
            {name: env[name] for name in foreign_variables() if env.get(name)}, home, project
        )

    def changes(self, profile: str) -> tuple[Change, ...]:
        """All changes to a profile, and to settings while that profile is in use."""
        if aliases_file(profile) is None:
            return ()
        from bethink.config.aliases import find_changes  # start-up time: for few profiles

        folders: dict[Source, Path | None] = {"user file": self.home, "project file": self.project}
        return find_changes(profile, self.variables, folders)
