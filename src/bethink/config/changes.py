"""Changes that the variables and files of another system make to a profile or to settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from bethink.config.paths import is_file
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
