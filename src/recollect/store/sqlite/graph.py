"""The graph of a space: entities and their names, and links."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import apsw

from recollect.model import Entity, Link, Node
from recollect.ports import Found, Match, Mention
from recollect.store.analysis import unspaced_runs
from recollect.store.sqlite.clock import from_ms, from_ms_or_none, to_ms
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.lexical import Hydrate
from recollect.store.sqlite.past import MOMENT, columns_then
from recollect.store.sqlite.scope import Predicate
from recollect.store.sqlite.terms import as_table
from recollect.text import fold

LONGEST_NAME = 4  # words
LONGEST_UNSPACED = 8  # letters
MOST_WORDS = 500  # of a text in which names are looked for

ENTITY = """
    e.id, e.kind, e.name, e.mentions, e.momentum, e.momentum_at, e.last_seen_at,
    (SELECT json_group_array(a.alias ORDER BY a.alias) FROM alias AS a WHERE a.entity = e.id)
"""
_ADD_ENTITY = """
    INSERT INTO entity (id, kind, name, created_at, last_seen_at) VALUES (?1, ?2, ?3, ?4, ?4)
    ON CONFLICT (id) DO UPDATE SET last_seen_at = max(coalesce(last_seen_at, ?4), ?4)
"""
_ADD_ALIAS = "INSERT INTO alias (alias, entity) VALUES (?, ?) ON CONFLICT DO NOTHING"
_ADD_MENTION = """
    INSERT INTO link
        (src_kind, src, type, dst_kind, dst, weight, confidence, source, created_at)
    VALUES ('item', ?1, 'mentions', 'entity', ?2, 1.0, ?3, 'rule', ?4)
    ON CONFLICT DO NOTHING
"""
_SURER = """
    UPDATE link SET confidence = max(confidence, ?3)
    WHERE src = ?1 AND type = 'mentions' AND dst = ?2
    AND src_kind = 'item' AND dst_kind = 'entity'
"""
_ADD_LINK = """
    INSERT INTO link
        (src_kind, src, type, dst_kind, dst, weight, confidence, context, source, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (src, type, dst, src_kind, dst_kind) DO UPDATE SET
        weight = excluded.weight, confidence = excluded.confidence,
        context = excluded.context, source = excluded.source
"""
_REMOVE_LINK = """
    DELETE FROM link WHERE src_kind = ? AND src = ? AND type = ? AND dst_kind = ? AND dst = ?
"""
LINK_COLUMNS = """
    l.src_kind, l.src, l.dst_kind, l.dst, l.type, l.weight, l.confidence, l.context,
    l.source, l.created_at
"""
_PIECE = re.compile(r"\w+(?:[-.'’]\w+)*")
_POSSESSIVE = re.compile(r"['’]s?$")


_NAMED = """
    SELECT max(length(n.alias)) AS found, COLUMNS
    FROM carray(?) AS w
    CROSS JOIN alias AS n ON n.alias = w.value
    CROSS JOIN entity AS e ON e.id = n.entity
    WHERE KNOWN GROUP BY e.id ORDER BY found DESC, HELD DESC, e.id LIMIT ?
"""
_NAMED_NOW = _NAMED.replace("COLUMNS", ENTITY).replace("KNOWN", "1").replace("HELD", "e.mentions")
_NAMED_THEN = (
    f"{MOMENT} {_NAMED}".replace("COLUMNS", columns_then(ENTITY))
    .replace("KNOWN", "e.created_at <= (SELECT at FROM m)")
    .replace("HELD", "held")
)


def find_entities(
    db: apsw.Connection, text: str, limit: int, then: int | None = None
) -> list[Entity]:
    """Entities whose name or alias occurs in the text, longest name first."""
    names = tuple(dict.fromkeys(_possible_names(text)))
    if not names or limit < 1:
        return []
    if then is None:
        rows = select(db, _NAMED_NOW, (as_table(names), limit))
    else:
        rows = select(db, _NAMED_THEN, (then, as_table(names), limit))
    return [to_entity(row[1:]) for row in rows]


def entities(db: apsw.Connection, prefix: str, limit: int, offset: int) -> list[Entity]:
    """Entities one of whose names begins so, most mentioned first."""
    start = alias_form(prefix)
    named = "WHERE e.id IN (SELECT entity FROM alias WHERE alias >= ? AND alias < ?)"
    rows = select(
        db,
        f"SELECT {ENTITY} FROM entity AS e {named if start else ''}"
        " ORDER BY e.mentions DESC, e.id LIMIT ? OFFSET ?",
        # The last character there is: all that begins so comes before it.
        (*((start, f"{start}\U0010ffff") if start else ()), max(limit, 0), max(offset, 0)),
    )
    return [to_entity(row) for row in rows]


def links_of(
    db: apsw.Connection,
    ids: Sequence[str],
    types: Sequence[str],
    incoming: bool,
    then: int | None = None,
) -> list[Link]:
    """Links that leave these nodes and, if wanted, those that enter them; each once.
    With a moment only those that were made by then."""
    if not ids:
        return []
    asked = as_table(tuple(dict.fromkeys(ids)))
    of_type = "AND l.type IN (SELECT value FROM json_each(?))" if types else ""
    known = "" if then is None else "AND l.created_at <= ?"
    ends = ("src", "dst") if incoming else ("src",)
    sql = " UNION ".join(
        f"SELECT {LINK_COLUMNS} FROM carray(?) AS w"
        f" CROSS JOIN link AS l ON l.{end} = w.value {of_type} {known}"
        for end in ends
    )
    one: tuple[Any, ...] = (asked, *([json.dumps(list(types))] if types else ()))
    if then is not None:
        one = (*one, then)
    rows = select(db, f"{sql} ORDER BY src, type, dst, src_kind, dst_kind", one * len(ends))
    return [to_link(row) for row in rows]


def add_links(db: apsw.Connection, links: Sequence[Link], now: datetime) -> None:
    """Adds links; the same ends and type again overwrite all but when it was made."""
    db.executemany(
        _ADD_LINK,
        (
            (
                *(link.src.kind, link.src.id, link.type, link.dst.kind, link.dst.id),
                *(link.weight, link.confidence, link.context, link.source),
                to_ms(link.created_at or now),
            )
            for link in links
        ),
    )


def remove_links(db: apsw.Connection, links: Sequence[Link]) -> list[Link]:
    """Removes links by their ends and type; gives those that were there."""
    gone = []
    for link in links:
        ends = (link.src.kind, link.src.id, link.type, link.dst.kind, link.dst.id)
        db.execute(_REMOVE_LINK, ends)
        if db.changes():
            gone.append(link)
    return gone


def add_mentions(
    db: apsw.Connection, item_id: str, mentions: Sequence[Mention], now: datetime
) -> None:
    """Links an item to whom and what it speaks of, and makes those that are new known.

    ``entity.mentions`` counts the items; the same mention again counts once.
    """
    at = to_ms(now)
    for entity, confidence, _ in mentions:
        db.execute(_ADD_ENTITY, (entity.id, entity.kind, entity.name, at))
        aliases = {alias_form(name) for name in (entity.name, *entity.aliases)}
        db.executemany(_ADD_ALIAS, ((alias, entity.id) for alias in sorted(aliases) if alias))
        db.execute(_ADD_MENTION, (item_id, entity.id, confidence, at))
        if db.changes():
            db.execute("UPDATE entity SET mentions = mentions + 1 WHERE id = ?", (entity.id,))
        else:
            db.execute(_SURER, (item_id, entity.id, confidence))


def search_entities(
    db: apsw.Connection,
    entities: Sequence[str],
    depth: int,
    predicate: Predicate,
    hydrate: Hydrate,
) -> Found:
    """Items that mention the entities; the score is the share of them, ties by id."""
    asked = tuple(dict.fromkeys(entities))
    if not asked or depth < 1:
        return Found(())
    # A link 'mentions' is of the live revision; an earlier one knows its entities itself.
    rows = select(
        db,
        f"""
        SELECT i.rid, json_group_array(l.dst ORDER BY l.dst) AS held
        FROM carray(?) AS w
        CROSS JOIN link AS l ON l.dst = w.value AND l.type IN ('mentions', 'mentioned')
            AND l.src_kind = 'item' AND l.dst_kind = 'entity'
        CROSS JOIN item AS i ON i.id = l.src
        WHERE CASE WHEN i.live_to IS NULL THEN l.type = 'mentions'
            ELSE instr(i.entities, json_quote(l.dst)) > 0 END
            AND ({predicate.sql})
        GROUP BY i.rid ORDER BY count(*) DESC, i.id LIMIT ?""",
        (as_table(asked), *predicate.values, depth),
    )
    names: dict[str, str] = dict(
        select(
            db,
            "SELECT e.id, e.name FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value",
            (as_table(asked),),
        )
    )
    items = hydrate(db, [rid for rid, _ in rows])
    matches = []
    for rid, held in rows:
        if rid in items:
            found = json.loads(held)
            why = f"mentions {', '.join(names.get(entity, entity) for entity in found)}"
            matches.append(Match(items[rid], len(found) / len(asked), why))
    return Found(tuple(matches), f"{len(asked)} entities asked for", 1.0)


def alias_form(name: str) -> str:
    """The form in which names are compared."""
    return fold(name) or " ".join(name.casefold().split())


def _possible_names(text: str) -> Iterator[str]:
    """Every run of up to four words that could be a name, in the form of an alias."""
    words = fold(text).split()[:MOST_WORDS]
    for at, word in enumerate(words):
        for length in range(1, LONGEST_NAME + 1):
            run = words[at : at + length]
            if len(run) == length:
                head, last = run[:-1], run[-1]
                trimmed = _POSSESSIVE.sub("", last.rstrip("?"))
                for end in dict.fromkeys((last, trimmed)):
                    yield " ".join((*head, end))
        for piece in _PIECE.findall(word):
            yield _POSSESSIVE.sub("", piece)
        for run_of_letters in unspaced_runs(word):
            yield from _substrings(run_of_letters[:MOST_WORDS])


def _substrings(run: str) -> Iterator[str]:
    for start in range(len(run)):
        for end in range(start + 1, min(start + LONGEST_UNSPACED, len(run)) + 1):
            yield run[start:end]


def to_entity(row: Sequence[Any]) -> Entity:
    identity, kind, name, mentions, momentum, momentum_at, last_seen_at, aliases = row
    own = alias_form(name)
    return Entity(
        id=identity,
        kind=kind,
        name=name,
        aliases=tuple(alias for alias in json.loads(aliases) if alias != own),
        mentions=mentions,
        momentum=momentum,
        momentum_at=from_ms_or_none(momentum_at),
        last_seen_at=from_ms_or_none(last_seen_at),
    )


def to_link(row: Sequence[Any]) -> Link:
    """The link of a row as LINK_COLUMNS gives it."""
    src_kind, src, dst_kind, dst, kind, weight, confidence, context, source, created_at = row
    return Link(
        src=Node(src_kind, src),
        dst=Node(dst_kind, dst),
        type=kind,
        weight=weight,
        confidence=confidence,
        context=context,
        source=source,
        created_at=from_ms(created_at),
    )
