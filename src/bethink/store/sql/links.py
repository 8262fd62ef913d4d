"""Entities by their names, the memories that mention them, and the order of turns.

Turns of a session get their sequence number and the link to the turn before inside the
write transaction, so that several writers to one session never give the same number,
and a late turn is put in its place. Both depend only on turns that are not classified
higher, so that a turn's number tells nothing of secret ones.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold
from bethink.errors import Refused
from bethink.model import Entity, Item
from bethink.ports import Mention, Record, SearchResult
from bethink.store.analysis import unspaced_runs
from bethink.store.sql import history
from bethink.store.sql.connection import (
    HIGHEST,
    Bindings,
    Database,
    Row,
    as_table,
    read_ahead,
    select,
)
from bethink.store.sql.search.lexical import SearchContext, load_matches
from bethink.store.sql.sql_functions import from_ms_or_none, to_json_ids, to_ms

MAX_NAME_WORDS = 4  # words
MAX_UNSPACED_LENGTH = 8  # letters
MAX_TEXT_WORDS = 500  # of a text in which names are looked for

ENTITY_COLUMNS = """
    e.id, e.kind, e.name, e.mentions, e.last_seen_at,
    (SELECT json_group_array(a.alias ORDER BY a.alias) FROM alias AS a WHERE a.entity = e.id)
"""
_ADD_ENTITY = """
    INSERT INTO entity (id, kind, name, created_at, last_seen_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET created_at = min(created_at, excluded.created_at),
        last_seen_at = max(coalesce(last_seen_at, excluded.last_seen_at), excluded.last_seen_at)
"""
NAMES_OF_ENTITIES = (
    "SELECT e.id, e.name FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value"
)
# A name given by a higher classified memory does not show below it.
RENAME = """
    UPDATE entity SET name = ?2 WHERE id = ?1 AND name <> ?2 AND NOT EXISTS (
        SELECT 1 FROM link AS l
        WHERE l.dst = ?1 AND l.src_kind = 'item' AND l.dst_kind = 'entity' AND ?3 >= coalesce(
            (SELECT i.classification FROM item AS i WHERE i.id = l.src ORDER BY i.rev DESC LIMIT 1),
            0))
"""
ADD_ALIAS = """
    INSERT INTO alias (alias, entity, classification) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET classification = min(classification, excluded.classification)
"""
_ADD_MENTION = """
    INSERT INTO link
        (src_kind, src, type, dst_kind, dst, weight, confidence, source, created_at)
    VALUES ('item', ?, 'mentions', 'entity', ?, 1.0, ?, 'rule', ?)
    ON CONFLICT DO NOTHING
"""
MENTIONED_BY = """
    SELECT l.src, l.dst FROM carray(?) AS w
    CROSS JOIN link AS l ON l.src = w.value AND l.type = 'mentions'
    WHERE l.src_kind = 'item' AND l.dst_kind = 'entity'
"""
COUNT_MENTIONS = "UPDATE entity SET mentions = mentions + ? WHERE id = ?"
_RAISE_CONFIDENCE = """
    UPDATE link SET confidence = max(confidence, ?3)
    WHERE src = ?1 AND type = 'mentions' AND dst = ?2
    AND src_kind = 'item' AND dst_kind = 'entity'
"""
_MENTION = "src_kind = 'item' AND dst_kind = 'entity'"


def update_mentions(db: Database, which: str, values: Bindings, kind: str, change: str = "") -> int:
    """Give mentions another kind; what is in their way goes. Return how many have it now."""
    condition = f"{which} AND {_MENTION}"
    db.execute(
        f"""DELETE FROM link WHERE type = '{kind}' AND (src, dst) IN (
            SELECT src, dst FROM link WHERE {condition}) AND {_MENTION}""",
        values,
    )
    db.execute(f"UPDATE link SET type = '{kind}'{change} WHERE {condition}", values)
    return db.changes()


_WORD_PIECE = lazy_pattern(r"\w+(?:[-.'’]\w+)*")
_POSSESSIVE = lazy_pattern(r"['’]s?$")


# Most names are nobody's, which the look-up alone shows.
_OWNERS_OF_NAMES = """
    SELECT n.entity, n.alias FROM carray(?) AS w
    CROSS JOIN alias AS n ON n.alias = w.value AND n.classification <= ?
"""


_ENTITIES_BY_ID = (
    f"SELECT {ENTITY_COLUMNS} FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value"
)
_KNOWN_TO_SOME = _ENTITIES_BY_ID.replace(
    "a.entity = e.id", "a.entity = e.id AND a.classification <= ?"
)
_ENTITIES_BY_ID_AS_OF = f"{history.AS_OF_CTE} {history.columns_as_of(_ENTITIES_BY_ID)}"


def read_entities(
    db: Database, ids: Iterable[str], as_of_ms: int | None = None, ceiling: int = HIGHEST
) -> dict[str, Entity]:
    """Return entities by id, with names up to a classification; unknown ids are left out."""
    requested = tuple(ids)
    if not requested:
        return {}
    if as_of_ms is None:
        rows = select(db, _KNOWN_TO_SOME, (ceiling, as_table(requested)))
    else:
        rows = select(db, _ENTITIES_BY_ID_AS_OF, (as_of_ms, as_table(requested)))
    return {row[0]: to_entity(row) for row in rows}


def find_entities(
    db: Database,
    texts: tuple[str, ...],
    limit: int,
    as_of_ms: int | None = None,
    max_classification: int = HIGHEST,
) -> list[list[Entity]]:
    """Return for each text the entities whose name or alias occurs in it, longest name first.

    The classification is that of the memories from which the names are known.
    """
    names_of = [tuple(dict.fromkeys(_candidate_names(text))) for text in texts]
    every = tuple({name: None for names in names_of for name in names})
    if not every or limit < 1:
        return [[] for _ in texts]
    owners: dict[str, list[str]] = {}
    for entity, alias in select(db, _OWNERS_OF_NAMES, (as_table(every), max_classification)):
        owners.setdefault(alias, []).append(entity)
    if not owners:
        return [[] for _ in texts]
    known = tuple(dict.fromkeys(entity for found in owners.values() for entity in found))
    found = read_entities(db, known, as_of_ms, max_classification)
    for later in history.entities_created_after(db, as_of_ms) & found.keys():
        del found[later]
    # How often they are mentioned is also told by memories above the classification.
    counts = max_classification >= HIGHEST
    return [_longest_named(names, owners, found, limit, counts=counts) for names in names_of]


def _longest_named(
    names: Iterable[str],
    owners: Mapping[str, Sequence[str]],
    known: Mapping[str, Entity],
    limit: int,
    *,
    counts: bool,
) -> list[Entity]:
    """Return the entities with any of the names; ties by mentions if ``counts``, then by id."""
    longest: dict[str, int] = {}
    for name in names:
        for entity in owners.get(name, ()):
            longest[entity] = max(len(name), longest.get(entity, 0))
    found = [known[entity] for entity in longest if entity in known]
    found.sort(key=lambda one: (-longest[one.id], -one.mentions if counts else 0, one.id))
    return found[:limit]


def list_entities(db: Database, prefix: str, limit: int, offset: int) -> list[Entity]:
    """Return entities with a name that starts with the prefix, most mentioned first."""
    start = normalise_alias(prefix)
    condition = "WHERE e.id IN (SELECT entity FROM alias WHERE alias >= ? AND alias < ?)"
    rows = select(
        db,
        f"SELECT {ENTITY_COLUMNS} FROM entity AS e {condition if start else ''}"
        " ORDER BY e.mentions DESC, e.id LIMIT ? OFFSET ?",
        # The last character there is: all that begins so comes before it.
        (*((start, f"{start}\U0010ffff") if start else ()), max(limit, 0), max(offset, 0)),
    )
    return [to_entity(row) for row in rows]


class MentionWriter:
    """Links items to the entities they mention, in one transaction at one time.

    What was added is written by `finish`, all at once. An entity or a name that comes again,
    in a memory classified as high or higher, changes nothing but the count of mentions.
    """

    def __init__(self, db: Database, now: datetime) -> None:
        self._db, self._at = db, to_ms(now)
        self._entities: dict[str, tuple[int, Entity]] = {}
        self._names: dict[tuple[str, str], int] = {}
        self._mentions: dict[tuple[str, str], float] = {}
        self.has_renamed = False

    def add(self, item_id: str, level: int, mentions: Sequence[Mention]) -> None:
        """Link an item of a classification to entities, creating those that are new."""
        for entity, confidence, _ in mentions:
            first = self._entities.get(entity.id)
            if first is None or level < first[0]:
                self._entities[entity.id] = (level, entity)
            for name in (entity.name, *entity.aliases):
                known = self._names.get((name, entity.id), HIGHEST)
                self._names[name, entity.id] = min(level, known)
            before = self._mentions.get((item_id, entity.id), confidence)
            self._mentions[item_id, entity.id] = max(before, confidence)

    def finish(self) -> None:
        """Write what was added; the same mention again counts once."""
        if self._entities:
            self._write_entities()
            self._write_names()
            self._write_mentions()
        self._entities, self._names, self._mentions = {}, {}, {}

    def _write_entities(self) -> None:
        known = select(self._db, NAMES_OF_ENTITIES, (as_table(tuple(self._entities)),))
        rows = ((one.id, one.kind, one.name, self._at) for _, one in self._entities.values())
        self._db.executemany(_ADD_ENTITY, [(*row, self._at) for row in rows])
        for entity, name in known:
            level, given = self._entities[entity]
            if given.name != name:
                self._db.execute(RENAME, (entity, given.name, level))
                self.has_renamed |= self._db.changes() > 0

    def _write_names(self) -> None:
        rows: dict[tuple[str, str], int] = {}
        for (name, entity), level in self._names.items():
            if alias := normalise_alias(name):
                rows[alias, entity] = min(level, rows.get((alias, entity), level))
        self._db.executemany(ADD_ALIAS, [(*key, level) for key, level in rows.items()])

    def _write_mentions(self) -> None:
        items = tuple(dict.fromkeys(item for item, _ in self._mentions))
        stored = set(select(self._db, MENTIONED_BY, (as_table(items),)))
        again = self._mentions.keys() & stored
        new = {ends: held for ends, held in self._mentions.items() if ends not in again}
        self._db.executemany(_ADD_MENTION, [(*ends, held, self._at) for ends, held in new.items()])
        for ends in sorted(again):
            self._db.execute(_RAISE_CONFIDENCE, (*ends, self._mentions[ends]))
        counts = Counter(entity for _, entity in new)
        self._db.executemany(COUNT_MENTIONS, [(n, entity) for entity, n in counts.items()])


def search_entities(entities: Sequence[str], depth: int, ctx: SearchContext) -> SearchResult:
    """Return items that mention the entities; the score is the share of them, ties by id."""
    db, predicate = ctx.db, ctx.predicate
    requested = tuple(dict.fromkeys(entities))
    if not requested or depth < 1:
        return SearchResult(())
    read_ahead(db, (NAMES_OF_ENTITIES, (as_table(requested),)))
    rows = select(
        db,
        f"""
        SELECT i.rid, json_group_array(l.dst ORDER BY l.dst) AS held
        FROM carray(?) AS w
        CROSS JOIN link AS l ON l.dst = w.value AND {history.MENTION_LINK}
        CROSS JOIN item AS i ON i.id = l.src
        WHERE {history.MENTIONED_AT_REVISION} AND ({predicate.sql})
        GROUP BY i.rid, i.id ORDER BY count(*) DESC, i.id LIMIT ?""",
        (as_table(requested), *predicate.values, depth),
    )
    names: dict[str, str] = dict(select(db, NAMES_OF_ENTITIES, (as_table(requested),)))
    found = []
    for rid, held_json in rows:
        held = json.loads(held_json)
        why = f"mentions {', '.join(names.get(entity, entity) for entity in held)}"
        found.append((rid, len(held) / len(requested), why))
    note = f"{len(requested)} entities searched"
    return SearchResult(load_matches(found, ctx), note, 1.0)


def normalise_alias(name: str) -> str:
    """Return the form in which names are compared."""
    return fold(name) or " ".join(name.casefold().split())


def _candidate_names(text: str) -> Iterator[str]:
    """Yield every run of up to four words that could be a name, in alias form."""
    words = fold(text).split()[:MAX_TEXT_WORDS]
    trimmed = [_POSSESSIVE.sub("", word.rstrip("?")) for word in words]
    for at, word in enumerate(words):
        head = ""
        for end in range(at, min(at + MAX_NAME_WORDS, len(words))):
            yield head + words[end]
            if trimmed[end] != words[end]:
                yield head + trimmed[end]
            head = f"{head}{words[end]} "
        if word.isalpha() and word.isascii():
            continue  # the word is its only piece
        for piece in _WORD_PIECE.findall(word):
            yield _POSSESSIVE.sub("", piece)
        for run in (letters[:MAX_TEXT_WORDS] for letters in unspaced_runs(word)):
            for start in range(len(run)):
                for end in range(start + 1, min(start + MAX_UNSPACED_LENGTH, len(run)) + 1):
                    yield run[start:end]


def to_entity(row: Row) -> Entity:
    identity, kind, name, mentions, last_seen_at, aliases = row
    own = normalise_alias(name)
    return Entity(
        id=identity,
        kind=kind,
        name=name,
        aliases=tuple(alias for alias in json.loads(aliases) if alias != own),
        mentions=mentions,
        last_seen_at=from_ms_or_none(last_seen_at),
    )


_MAX_SEQ = 2**63 - 1  # the largest number a column holds
_MAX_SEQ_AT = """(
    SELECT max(i.seq) FROM item AS i
    WHERE i.session = w.value AND i.live_to IS NULL AND i.classification <= {level:d})
"""
_NEXT_TURN = """
    SELECT id FROM item
    WHERE session = ? AND live_to IS NULL AND (seq, id) > (?, ?) AND classification = ?
    ORDER BY seq, id LIMIT 1
"""
# The turn before each: the last of those that all who see it may see.
_FOLLOWED_TURNS = """
    SELECT i.id, (SELECT p.id FROM item AS p WHERE p.session = i.session AND p.live_to IS NULL
        AND (p.seq, p.id) < (i.seq, i.id) AND p.classification <= i.classification
        ORDER BY p.seq DESC, p.id DESC LIMIT 1)
    FROM json_each(?) AS w CROSS JOIN item AS i ON i.id = w.value AND i.live_to IS NULL
"""
# Of sessions: the last of the turns before a batch.
_LAST_SEQS = """
    SELECT w.value, (
        SELECT i.seq FROM item AS i WHERE i.session = w.value AND i.live_to IS NULL
        AND i.rid < ?1 AND i.seq IS NOT NULL ORDER BY i.seq DESC LIMIT 1)
    FROM json_each(?2) AS w
"""
_LINK_FOLLOWS = """
    INSERT INTO link (src_kind, src, type, dst_kind, dst, source, created_at)
    VALUES ('item', ?, 'follows', 'item', ?, 'rule', ?) ON CONFLICT DO NOTHING
"""
_UNLINK_FOLLOWS = """
    DELETE FROM link WHERE src = ? AND type = 'follows' AND src_kind = 'item'
    AND dst_kind = 'item'
"""


def assign_turn_numbers(db: Database, records: Sequence[Record]) -> list[Record]:
    """Number the turns of a session that have no number after its last one."""
    highest = _highest_numbers(db, records)
    numbered = []
    for record in records:
        item = record.item
        if item.session is None or item.rev > 1:
            numbered.append(record)
            continue
        last = highest[item.session, item.classification]
        seq = last + 1 if item.seq is None else item.seq
        if seq > _MAX_SEQ:
            raise Refused(f"the session {item.session!r} has no number left for another turn")
        for level in range(item.classification, HIGHEST + 1):
            highest[item.session, level] = max(highest[item.session, level], seq)
        same = item.seq == seq
        numbered.append(record if same else replace(record, item=item._replace(seq=seq)))
    return numbered


def _highest_numbers(db: Database, records: Iterable[Record]) -> dict[tuple[str | None, int], int]:
    """Return the last number of each session of new turns, as each classification sees it."""
    turns = [one.item for one in records if one.item.session is not None and one.item.rev == 1]
    if not turns:
        return {}
    levels = range(min(item.classification for item in turns), HIGHEST + 1)
    columns = ", ".join(_MAX_SEQ_AT.format(level=level) for level in levels)
    sessions = to_json_ids(str(item.session) for item in turns)
    return {
        (session, level): -1 if seq is None else int(seq)
        for session, *numbers in select(
            db, f"SELECT w.value, {columns} FROM json_each(?) AS w", (sessions,)
        )
        for level, seq in zip(levels, numbers, strict=True)
    }


def link_turns(db: Database, stored: Iterable[Item], now: int, first_rid: int) -> None:
    """Link each new turn to the one before it, and the one after to it."""
    turns = [item for item in stored if item.session is not None and item.rev == 1]
    if not turns:
        return
    new = {item.id for item in turns}
    sessions = to_json_ids(str(item.session) for item in turns)
    last_seq: dict[str, int | None] = dict(select(db, _LAST_SEQS, (first_rid, sessions)))
    after: set[str] = set()
    for item in turns:
        last = last_seq[str(item.session)]
        if last is None or item.seq is None or item.seq > last:
            continue  # no turn that was there before comes after it
        for level in range(item.classification, HIGHEST + 1):  # of each that may see it
            position = (item.session, item.seq, item.id, level)
            after.update(row[0] for row in select(db, _NEXT_TURN, position))
    followed = select(db, _FOLLOWED_TURNS, (to_json_ids((*sorted(new), *sorted(after - new))),))
    moved = [(turn,) for turn, before in followed if turn not in new and before in new]
    db.executemany(_UNLINK_FOLLOWS, moved)
    links = [
        (turn, before, now)
        for turn, before in followed
        if before is not None and (turn in new or before in new)
    ]
    db.executemany(_LINK_FOLLOWS, links)


# Only memories with a layer and pinned ones are counted; there is an index of these alone.
_IS_LAYERED = (
    "i.live_to IS NULL AND (i.layer IS NOT NULL OR i.pinned = 1)"
    " AND CASE WHEN i.layer IS NULL THEN i.pinned ELSE 1 END = 1"
)
_COUNT_LAYERS = f"""
    SELECT l.dst, i.layer, count(*), sum(i.pinned) FROM carray(?) AS w
    CROSS JOIN link AS l ON l.dst = w.value AND {history.IS_MENTION}
    CROSS JOIN item AS i ON i.id = l.src AND {_IS_LAYERED} AND i.classification <= ?
    GROUP BY l.dst, i.layer ORDER BY l.dst, i.layer
"""
# Where these are few, their links are fewer than those of the entities.
_COUNT_LAYERS_OF_FEW = f"""
    SELECT l.dst, i.layer, count(*), sum(i.pinned) FROM item AS i
    CROSS JOIN link AS l ON l.src = i.id AND {history.IS_MENTION}
    WHERE {_IS_LAYERED} AND l.dst IN (SELECT value FROM json_each(?)) AND i.classification <= ?
    GROUP BY l.dst, i.layer ORDER BY l.dst, i.layer
"""
_FEW_LAYERED = 2_000
_COUNT_LAYERED = f"SELECT count(*) FROM (SELECT 1 FROM item AS i WHERE {_IS_LAYERED} LIMIT ?) AS c"


class EntityCounts(NamedTuple):
    """How many memories of an entity are in each layer, and how many are pinned."""

    layers: tuple[tuple[str, int], ...] = ()
    pinned: int = 0


def count_layers(db: Database, ids: Sequence[str], ceiling: int) -> dict[str, EntityCounts]:
    """Count the memories of each entity by layer, and the pinned ones, up to a classification."""
    counts = dict.fromkeys(ids, EntityCounts())
    few = int(db.execute(_COUNT_LAYERED, (_FEW_LAYERED + 1,)).get) <= _FEW_LAYERED
    rows = (
        select(db, _COUNT_LAYERS_OF_FEW, (json.dumps(list(ids)), ceiling))
        if few
        else select(db, _COUNT_LAYERS, (as_table(tuple(ids)), ceiling))
    )
    for entity, layer, count, pins in rows:
        layers, pinned = counts[entity]
        in_layer = () if layer is None else ((layer, count),)
        counts[entity] = EntityCounts((*layers, *in_layer), pinned + pins)
    return counts
