"""Makes one pool of channels that are listened to in a fixed order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.context import Channel, Context
from recollect.model import Candidate, Evidence, Item, Pool, best_first


@dataclass(frozen=True, slots=True)
class Priority:
    """A memory scores what the first stage of ``order`` that found it gave, times the
    channel's weight; what later ones saw stays beside it as evidence.

    A name in ``order`` stands for a channel and for all below it, which are one stage: of
    "sf.porter" and "sf.trigram" the better one counts. Channels that are not named come
    last, by name. ``pool`` cuts what is passed on; 0 passes everything.
    """

    order: tuple[str, ...] = ()
    pool: int = 0
    name: str = "priority"

    def __call__(self, found: Mapping[Channel, Pool], ctx: Context) -> Pool:
        items: dict[str, Item] = {}
        seen: dict[str, list[Evidence]] = {}
        best: dict[str, tuple[tuple[int, float, str], Evidence]] = {}
        for channel in sorted(found, key=lambda channel: (self._place(channel), channel.name)):
            for cand in found[channel]:
                key, own = cand.item.id, cand.evidence[-1]
                value = channel.weight * max(0.0, own.value)
                share = Evidence(f"fuse.{channel.name}", "add", value, f"rank {own.rank}")
                claim = ((self._place(channel), -value, channel.name), share)
                items.setdefault(key, cand.item)
                seen.setdefault(key, []).append(own.as_seen())
                best[key] = min(claim, best.get(key, claim), key=lambda one: one[0])
        merged = best_first(
            Candidate(item, best[key][1].value, (*seen[key], best[key][1]))
            for key, item in items.items()
        )
        return merged[: ctx.reach(self.pool)] if self.pool else merged

    def _place(self, channel: Channel) -> int:
        for place, name in enumerate(self.order):
            if channel.name == name or channel.name.startswith(f"{name}."):
                return place
        return len(self.order)
