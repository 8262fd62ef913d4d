"""Memories in full, as lines of a list, and revision by revision."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from recollect.cli.printing import Ink, Printer, bold, cyan, day, dim, moment, one_line
from recollect.cli.tables import Column, print_table
from recollect.heat import pace_of
from recollect.model import Entity, Item

# Facts worth a line of their own, in this order; those at their defaults stay out.
_FACTS = (
    "kind", "level", "layer", "topic", "tier", "tags", "entities", "caption", "speaker",
    "session", "seq", "parent", "subject", "attribute", "occurred_at", "occurred_end",
    "valid_from", "valid_to", "status", "live_to", "ended_by", "flags", "importance", "confidence",
    "emotion", "pinned", "protected", "classification", "integrity", "credibility", "language",
    "original", "recalls", "last_recalled_at", "metadata",
)  # fmt: skip
_ALWAYS = ("kind", "level")


def print_item(out: Printer, item: Item) -> None:
    """The text, then a line a fact."""
    out.line(bold(item.id), dim(f"  revision {item.rev}"))
    out.line()
    out.block(item.text, indent=2, first=("  ",))
    out.line()
    facts = [("stored", f"{moment(item.stored_at)} by {item.writer}")]
    facts.append(("source", f"{item.source} ({item.source_class}, trust {item.trust} of 3)"))
    plain = Item(id="", text="", stored_at=item.stored_at, source="")
    facts += [
        (name.replace("_", " "), _told(getattr(item, name)))
        for name in _FACTS
        if name in _ALWAYS or getattr(item, name) != getattr(plain, name)
    ]
    for name, value in facts:
        out.block(value, indent=20, first=("  ", dim(f"{name:<18}")))


def _told(value: Any) -> str:
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return str(dict(value)) if hasattr(value, "items") else str(value)


def print_items(out: Printer, items: Sequence[Item], *, middle: str | None = None) -> None:
    """A line a memory; the one in the ``middle`` stands out."""
    heads = [Column("id"), Column("when"), Column("kind"), Column("text", wide=True)]
    rows = [
        (
            _id(item, middle),
            dim(moment(item.when)),
            item.kind,
            one_line(f"{item.speaker}: {item.text}" if item.speaker else item.text, 300),
        )
        for item in items
    ]
    print_table(out, heads, rows)


def _id(item: Item, middle: str | None) -> Ink:
    return cyan(item.id) if item.id == middle else bold(item.id)


def print_revisions(out: Printer, revisions: Sequence[Item]) -> None:
    """Each revision with when it held and what it changed."""
    heads = [
        Column("rev", right=True),
        Column("since"),
        Column("until"),
        Column("change", wide=True),
    ]
    rows = []
    before: Item | None = None
    for item in revisions:
        until = moment(item.live_to) if item.live_to else "now"
        ended = f" ({item.ended_by})" if item.ended_by else ""
        since = moment(item.live_from or item.stored_at)
        rows.append((str(item.rev), since, until + ended, _change(before, item)))
        before = item
    print_table(out, heads, rows)


def _change(before: Item | None, item: Item) -> str:
    if before is None:
        return item.text
    changes = [
        f"{name.replace('_', ' ')}: {_told(getattr(before, name))} → {_told(getattr(item, name))}"
        for name in ("text", *_FACTS)
        if name not in ("live_to", "ended_by", "recalls", "last_recalled_at")
        and getattr(before, name) != getattr(item, name)
    ]
    return "\n".join(changes) or "nothing"


def print_entities(out: Printer, entities: Sequence[Entity]) -> None:
    """A line an entity: how lively, how much is known, of which layers, by which names."""
    heads = [
        Column("momentum"),
        Column("memories", right=True),
        Column("kind"),
        Column("name", wide=True),
        Column("of these", wide=True),
        Column("last seen"),
    ]
    rows = [
        (
            f"{entity.momentum:4.1f} {pace_of(entity.momentum)}",
            f"{entity.mentions:,}",
            dim(entity.kind),
            bold(", ".join((entity.name, *entity.aliases))),
            dim(_counts(entity)),
            dim(day(entity.last_seen_at)),
        )
        for entity in entities
    ]
    print_table(out, heads, rows)


def _counts(entity: Entity) -> str:
    counts = [f"{layer} {count}" for layer, count in entity.layers]
    return ", ".join([*counts, f"pinned {entity.pinned}"] if entity.pinned else counts)
