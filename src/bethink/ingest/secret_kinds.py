"""Kinds of secrets: patterns, the keywords they need, and how a match is checked.

Every pattern runs in RE2, in time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.ingest import secret_values


class SecretKind(NamedTuple):
    """A secret's pattern, the keywords it requires and a check of each match.

    The last group that took part in the match is the secret; without groups it is the whole
    match. Keywords are lower case and searched in any case; those of a ``long`` kind as they
    are, in words of 20 characters. The words before the secret must not match ``unless``. With
    ``near`` the match itself is no secret: every word around it that the check accepts is one.
    A ``personal`` kind is searched only on request.
    """

    name: str
    words: tuple[str, ...]
    pattern: str
    check: Callable[[str], bool]
    unless: re.Pattern[str]
    long: bool = False
    near: bool = False
    personal: bool = False


_MARK = re.compile(r"<([A-Z_]{2,})>")


def _read_kinds() -> Iterator[SecretKind]:
    """Read the table next to this module; its head explains the columns."""
    fragments: dict[str, str] = {}
    exclusions: dict[str, re.Pattern[str]] = {}
    section = ""
    for line in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines():
        if line.startswith(("#", "@")):
            section = line
            continue
        name, *columns = _MARK.sub(lambda mark: fragments[mark[1]], line).split("\t")
        if len(columns) == 1:
            fragments[name] = columns[0]
            continue
        check, words, pattern, *unless = columns
        if not unless:
            unless = [fragments["OTHER_CODES" if name == "pin" else "NAMES"]]
        yield SecretKind(
            name,
            tuple(filter(None, words.split(","))),
            pattern,
            getattr(secret_values, f"is_{check}"),
            exclusions.setdefault(unless[0], lazy_pattern(unless[0])),
            long=section == "@long",
            near=check.endswith("nearby"),
            personal=section == "@personal",
        )


SECRET_KINDS = tuple(_read_kinds())
