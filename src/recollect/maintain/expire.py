"""Counts what is no longer valid. Recall leaves it out by itself; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recollect.maintain.job import Proposal, Work
from recollect.maintain.looking import each


@dataclass(frozen=True, slots=True)
class Expire:
    """Says how many memories have passed their ``valid_to``, and names the first few."""

    shown: int = 5
    name: str = "expire"
    ends_raw: bool = False
    by_age: bool = False

    def plan(self, work: Work) -> Iterator[Proposal]:
        """A remark where there are any."""
        past = [
            item.id
            for item in each(work, include_expired=True)
            if item.valid_to is not None and item.valid_to <= work.now
        ]
        if past:
            some = ", ".join(past[: self.shown])
            more = ", ..." if len(past) > self.shown else ""
            yield Proposal(
                f"no longer valid, so no longer recalled: {len(past)} ({some}{more})", ""
            )
