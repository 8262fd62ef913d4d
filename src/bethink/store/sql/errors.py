"""Errors of a driver as our own, by the rules in the ``errors.toml`` next to its store."""

from __future__ import annotations

from pathlib import Path

from bethink import errors
from bethink.core.toml import parse_toml
from bethink.errors import BadText, BethinkError, Refused

# Raised by values that no store takes.
UNSTORABLE = (UnicodeEncodeError, OverflowError)


class ErrorRules:
    """Which of our errors those of a driver become.

    Read at once: when an error comes, perhaps no further file can be opened.
    """

    def __init__(self, folder: Path) -> None:
        found = parse_toml((folder / "errors.toml").read_text("utf-8"))["rule"]
        self._rules = [(frozenset(rule["errors"].split()), rule) for rule in found]

    def apply(self, error: Exception, /, **told: object) -> BethinkError | None:
        """Return our error for one of the driver or of a value; None where no rule names it."""
        if isinstance(error, UnicodeEncodeError):
            bad = error.object[error.start : error.end]
            return BadText(f"{bad!a} is a lone surrogate and cannot be stored")
        if isinstance(error, OverflowError):
            return Refused(f"a number does not fit into the store: {error}")
        names = {kind.__name__ for kind in type(error).__mro__}
        rule = next((rule for known, rule in self._rules if not names.isdisjoint(known)), None)
        if rule is None:
            return None
        kind: type[BethinkError] = getattr(errors, rule["kind"])
        return kind(rule["message"].format(**told), remedy=rule["remedy"])
