"""The sweep: memories so long unused and so unimportant that they may go, softly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recollect.heat import COMPRESS_FROM, DROP_FROM, forgetting_risk
from recollect.maintain.job import Proposal, Work, spared
from recollect.maintain.looking import TOLD, each, heats
from recollect.text import caption


@dataclass(frozen=True, slots=True)
class Forget:
    """Memories whose forgetting risk is ``drop_from`` or more, the ripest first.

    Pinned and protected ones, goals, caveats and verbatim episodes stay. What is between
    ``compress_from`` and that is only counted: consolidation is for those.
    """

    drop_from: float = DROP_FROM
    compress_from: float = COMPRESS_FROM
    name: str = "forget"
    ends_raw: bool = False
    by_age: bool = True

    def plan(self, work: Work) -> Iterator[Proposal]:
        """One proposal a memory, so that a bound cuts exactly."""
        with work.store.snapshot():
            items = [item for item in each(work) if spared(item, self) is None]
            warm = heats(items, work)
        risks = [
            (forgetting_risk(warm[item.id][0], item.importance, warm[item.id][1]), item)
            for item in items
        ]
        ripe = sorted(
            ((risk, item) for risk, item in risks if risk >= self.drop_from),
            key=lambda one: (-one[0], one[1].id),
        )
        between = sum(self.compress_from <= risk < self.drop_from for risk, _ in risks)
        if between:
            yield Proposal(f"{between:,} more could be consolidated", "")
        for risk, item in ripe:
            unused = warm[item.id][1]
            why = f"risk {risk:.0f}: unused for {unused:.0f} days, importance {item.importance:g}"
            yield Proposal(
                f"{why}: {caption(item.text, item.speaker, limit=TOLD)}",
                f"forgetting risk {risk:.0f}",
                ends=(item.id,),
                seen={item.id: item.rev},
            )
