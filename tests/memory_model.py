"""What a memory should hold, in plain Python: the model that the real one is held against."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

TOKEN = re.compile(r"zq\d{4}")


class StoredText(NamedTuple):
    """What one revision says."""

    text: str
    pinned: bool


@dataclass
class ExpectedMemory:
    """One memory: all its revisions, and how it stands. ``stands_in`` are the runs in which
    it took the place of others."""

    said: list[StoredText]
    live: bool = True
    valid_to: datetime | None = None
    ended_by: str | None = None
    job: str | None = None
    run: str | None = None
    parents: set[str] = field(default_factory=set)
    stands_in: set[str] = field(default_factory=set)
    status: str = "active"
    last: str = "stored"

    @property
    def text(self) -> str:
        return self.said[-1].text

    @property
    def pinned(self) -> bool:
        return self.said[-1].pinned

    def end(self, how: str) -> None:
        self.live, self.ended_by, self.last = False, how, "ended"

    def restore(self) -> None:
        self.said.append(self.said[-1])
        self.live, self.ended_by, self.last = True, None, "restored"

    def revise(self, said: StoredText) -> None:
        self.said.append(said)
        self.last = "revised"


class Expected:
    """Everything that was acknowledged, and what was erased."""

    def __init__(self) -> None:
        self.known: dict[str, ExpectedMemory] = {}
        self.erased: set[str] = set()
        self.erased_tokens: set[str] = set()
        self.keys: dict[str, tuple[str, str]] = {}

    def live(self) -> set[str]:
        return {key for key, one in self.known.items() if one.live}

    def pick(self, number: int, *, live: bool | None = None, made: bool | None = None) -> str:
        """One of the memories, the same number the same one; "" where there is none."""
        fitting = [
            key
            for key, one in sorted(self.known.items())
            if live in (None, one.live) and made in (None, one.job is not None)
        ]
        return fitting[number % len(fitting)] if fitting else ""

    def reach_of(self, first: str) -> set[str]:
        """What an erase takes along: all that maintenance made of it, and what somebody
        made of nothing else."""
        going = {first}
        while True:
            more = {
                key
                for key, one in self.known.items()
                if key not in going
                and one.parents & going
                and (one.job is not None or one.parents <= going)
            }
            if not more:
                return going
            going |= more

    def orphans_of(self, going: set[str]) -> set[str]:
        """What was ended in favour of something that goes, and stays itself."""
        return {
            parent
            for key in going
            for parent in self.known[key].parents - going
            if not self.known[parent].live
            and self.known[parent].ended_by in self.known[key].stands_in
        }

    def erase(self, going: Iterable[str]) -> None:
        gone = set(going)
        for key in gone:
            one = self.known.pop(key)
            self.erased_tokens |= {word for said in one.said for word in TOKEN.findall(said.text)}
        self.erased |= gone
        for one in self.known.values():
            one.parents -= gone

    def forbidden(self) -> set[str]:
        """Words of erased memories that nothing which is left may hold."""
        held = (said.text for one in self.known.values() for said in one.said)
        return self.erased_tokens - {word for text in held for word in TOKEN.findall(text)}
