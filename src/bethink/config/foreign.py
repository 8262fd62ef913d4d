"""What other systems configure: their variables and files change our profiles and settings.

A system's own names are in ``systems/NAME/aliases.toml`` and count only while its profile
is in use. `bethink.config.aliases` reads them, and is not loaded for any other profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from bethink.config.changes import SYSTEMS, Change, Source, aliases_file
from bethink.core.dataclass import dataclass


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
