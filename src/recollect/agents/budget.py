"""Keeps what is given to an agent within a number of tokens, all that frames it included."""

from __future__ import annotations

import re

from recollect.agents.tokens import tokens_at_most
from recollect.model import Item
from recollect.quoting import Quote, cut, one_line, quoted
from recollect.sources.said.prose import without_code
from recollect.text import visible

# Below it are sources that speak for nobody. What is flagged may give orders, or hide some.
_LEAST_TRUST = 1
_MARK = re.compile(r"^<<[a-z]+ ([0-9a-f]{16})>>$", re.MULTILINE)
_ENTRY = 22  # tokens around a quoted text: the code, its number, the line's end


def may_be_given(item: Item) -> bool:
    """Whether a memory may be put before an agent that did not ask for it by name."""
    return item.trust >= _LEAST_TRUST and not item.flags


def shown(quote: Quote, longest: int) -> Quote:
    """A quote as it is given: nothing hidden in it, code told by its length, cut at so many
    characters."""
    return Quote(one_line(quote.head), cut(without_code(visible(quote.text)).strip(), longest))


def cost_of(quote: Quote) -> int:
    """What a quote takes of a budget, in tokens."""
    return _ENTRY + tokens_at_most(quote.head) + tokens_at_most(quote.text)


def framed(opening: str, quotes: list[Quote], name: str) -> str:
    """An opening line of ours, then the quotes behind a code; empty where there are none."""
    return f"{opening}\n{quoted(quotes, name, longest=None)}" if quotes else ""


def given_in(context: str) -> tuple[str, ...]:
    """The ids of what was quoted so: the first word of every head. No quoted text can pass
    for a head, since none holds the code."""
    opening = _MARK.search(context)
    if opening is None:
        return ()
    heads = re.findall(rf"^\[{opening[1]} \d+\] (\S+) \|", context, re.MULTILINE)
    return tuple(heads)


def frame_cost(opening: str) -> int:
    """What all around the quotes takes of a budget, in tokens."""
    probe = framed(opening, [Quote("", "x")], "briefing")
    return tokens_at_most(probe) + 3
