"""Anchors: the code that a memory is tied to, and its changes since."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused

CodeChange = Literal["same", "changed", "moved", "gone", "unknown"]
CODE_CHANGES: tuple[CodeChange, ...] = get_args(CodeChange)
MAX_ANCHORS = 16
_MAX_CHARACTERS = 500
_MARK = "@@"  # between the name of an anchor and what was read when it was made
_HEX = "([0-9a-f]{0,64})"
_PINNED = lazy_pattern(rf"(given|found):{_HEX}:{_HEX}:{_HEX}:{_HEX}:([0-9]{{1,7}})")


class Anchor(NamedTuple):
    """A place in a repository that a memory is about, as it was when the memory was made.

    ``path`` is relative to the repository's folder, ``symbol`` a function, class or constant
    in it (empty: the whole file). ``repo`` is the first commit of the repository, ``commit``
    the one checked out, ``blob`` what git calls the file's content, ``body`` a hash of the
    symbol without white space and its own name, ``lines`` how many it had. Those are empty
    where no repository was read. ``how``: a caller gave it, or the memory's text names it.
    """

    path: str
    symbol: str = ""
    how: str = "given"
    repo: str = ""
    commit: str = ""
    blob: str = ""
    body: str = ""
    lines: int = 0

    @property
    def name(self) -> str:
        """The place as people write it: ``path`` or ``path::symbol``."""
        return f"{self.path}::{self.symbol}" if self.symbol else self.path

    @property
    def text(self) -> str:
        """The form in which a memory holds it, from which `parse_anchor` makes it again."""
        if not self.blob:
            return self.name
        pinned = (self.how, self.repo, self.commit, self.blob, self.body, str(self.lines))
        return f"{self.name}{_MARK}{':'.join(pinned)}"


def anchor_name(text: str) -> str:
    """The name of an anchor that a memory holds: ``path`` or ``path::symbol``."""
    return text.partition(_MARK)[0]


def is_found(text: str) -> bool:
    """Whether an anchor was found in the memory's own text."""
    return f"{_MARK}found:" in text


def parse_anchor(text: str) -> Anchor:
    """Read an anchor from ``path::symbol`` or the form in which a memory holds it.

    Raises Refused where the path is not one inside a repository.
    """
    name, mark, rest = str(text).partition(_MARK)
    path, _, symbol = name.strip().replace("\\", "/").partition("::")
    parts = (path := path.removeprefix("./")).split("/")
    pinned = _PINNED.fullmatch(rest if mark else "given:::::0")
    inside = not ({"", ".", "..", ".git"} & set(parts) or ":" in parts[0])
    if pinned is None or not inside or len(name) > _MAX_CHARACTERS or not name.isprintable():
        raise Refused(
            f"{text!r:.80} is no path::symbol relative to a repository's folder",
            remedy="such as src/app.py::main",
        )
    how, repo, commit, blob, body, lines = pinned.groups()
    return Anchor(path, symbol, how, repo, commit, blob, body, int(lines))


class CodeState(NamedTuple):
    """What has become of the code that an anchor names.

    ``moved``: it is the same elsewhere, at ``now`` (``path::symbol``). What has changed may
    have moved as well. ``changed`` of its ``lines`` are no longer there and ``added`` are new;
    None where the earlier text is not in the repository.
    """

    anchor: Anchor
    change: CodeChange
    now: str = ""
    changed: int | None = None
    added: int = 0

    def describe(self, since: datetime) -> str:
        """What happened, in words: "`f` in src/x.py changed since 2026-05-03: 12 of 30 lines"."""
        anchor = self.anchor
        name = f"`{anchor.symbol}` in {anchor.path}" if anchor.symbol else anchor.path
        if self.change == "moved":
            return f"{name} is now {self.now}"
        if self.change != "changed":
            return f"{name} is {self.change}"
        moved = f", now {self.now}" if self.now else ""
        count = f"{self.changed} of {anchor.lines} lines" if self.changed else ""
        count = count or (f"{self.added} lines added" if self.added else "")
        return f"{name} changed since {since:%Y-%m-%d}{moved}{count and f': {count}'}"
