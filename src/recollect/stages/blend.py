"""Blends likeness of meaning with shared words, and weighs in confidence and forgetting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from recollect.context import Channel, Context
from recollect.model import Candidate, Evidence, Item, Pool, best_first, replay

_GAP = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class Blend:
    """(1 − w) × the best cosine + w × the share of the question's words that occur.

    A word counts from two letters on, and where it stands inside another word. On the
    ``faded`` levels the sum is × confidence × what forgetting has left, and what does
    not get above ``threshold`` is dropped. A channel's weight scales its score; with
    weight 0 it only brings memories in.
    """

    keyword_weight: float = 0.3
    threshold: float = 0.1
    faded: tuple[str, ...] = ("item", "insight")
    name: str = "blend"

    def __call__(self, found: Mapping[Channel, Pool], ctx: Context) -> Pool:
        words = asked_words(ctx.query.text)
        items: dict[str, Item] = {}
        seen: dict[str, list[Evidence]] = {}
        nearest: dict[str, float] = {}
        for channel, pool in found.items():
            for cand in pool:
                own = cand.evidence[-1]
                items.setdefault(cand.item.id, cand.item)
                seen.setdefault(cand.item.id, []).append(own.as_seen())
                value = channel.weight * own.value
                nearest[cand.item.id] = max(nearest.get(cand.item.id, value), value)
        blended = [
            self._blended(item, seen[key], nearest[key], words) for key, item in items.items()
        ]
        kept = [cand for cand in blended if not self._fades(cand.item) or self._passes(cand)]
        if len(kept) < len(blended):
            ctx.remark(f"{len(blended) - len(kept)} not above {self.threshold:g}")
        return best_first(kept)

    def _blended(
        self, item: Item, seen: list[Evidence], near: float, words: tuple[str, ...]
    ) -> Candidate:
        weight = self.keyword_weight
        share, held = overlap(words, item)
        reasons = [
            Evidence("fuse.meaning", "add", (1.0 - weight) * near, f"likeness {near:.2f}"),
            Evidence("fuse.words", "add", weight * share, f"{held} of {len(words)} words"),
        ]
        if self._fades(item):
            if item.confidence != 1.0:
                reasons.append(Evidence("fuse.confidence", "times", item.confidence, "how sure"))
            if item.decay != 1.0:
                reasons.append(Evidence("fuse.decay", "times", item.decay, "not forgotten yet"))
        return Candidate(item, replay(reasons), (*seen, *reasons))

    def _fades(self, item: Item) -> bool:
        return item.level in self.faded

    def _passes(self, cand: Candidate) -> bool:
        return cand.score > self.threshold


def asked_words(text: str) -> tuple[str, ...]:
    """The question's words of two letters or more, each once, in small letters."""
    return tuple(dict.fromkeys(word for word in _GAP.split(text.lower()) if len(word) >= 2))


def overlap(words: tuple[str, ...], item: Item) -> tuple[float, int]:
    """The share of the words that occur in a memory's title and text, and how many do."""
    said = f"{item.caption or ''} {item.text}".lower()
    held = sum(word in said for word in words)
    return (held / len(words) if words else 0.0), held
