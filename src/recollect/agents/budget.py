"""Keeps what is given to an agent within a number of tokens, all that frames it included."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.agents.tokens import tokens_at_most
from recollect.model import Item
from recollect.quoting import Quote, cut, one_line, quoted
from recollect.text import visible

# Sources that speak for nobody; what hides orders in itself is not given unasked either.
_LEAST_TRUST = 1
_ENTRY = 22  # tokens around a quoted text: the code, its number, the line's end


def may_be_given(item: Item) -> bool:
    """Whether a memory may be put before an agent that did not ask for it by name."""
    return item.trust >= _LEAST_TRUST and not item.flags


def shown(quote: Quote, longest: int) -> Quote:
    """A quote as it is given: nothing hidden in it, cut at so many characters."""
    return Quote(one_line(quote.head), cut(visible(quote.text).strip(), longest))


def cost_of(quote: Quote) -> int:
    """What a quote takes of a budget, in tokens."""
    return _ENTRY + tokens_at_most(quote.head) + tokens_at_most(quote.text)


def fitting(quotes: Iterable[Quote], most_tokens: int) -> list[Quote]:
    """Those that fit, in order; one that is too long does not keep out the shorter ones
    behind it."""
    kept, room = [], most_tokens
    for quote in quotes:
        cost = cost_of(quote)
        if cost <= room:
            kept.append(quote)
            room -= cost
    return kept


def framed(opening: str, quotes: list[Quote], name: str) -> str:
    """An opening line of ours, then the quotes behind a code; empty where there are none."""
    return f"{opening}\n{quoted(quotes, name, longest=None)}" if quotes else ""


def frame_cost(opening: str) -> int:
    """What all around the quotes takes of a budget, in tokens."""
    probe = framed(opening, [Quote("", "x")], "briefing")
    return tokens_at_most(probe) + 3
