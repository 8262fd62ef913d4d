"""Administration of a space: journal, statistics, export and checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from bethink.core.json_values import Json, JsonObjects
from bethink.errors import Refused
from bethink.model.item import REFUSED, WAITING
from bethink.ports import CheckResult, Event, Progress
from bethink.store.sql import history
from bethink.store.sql.ceiling import is_below_ceiling
from bethink.store.sql.connection import Connections, Database, Row, generation, select
from bethink.store.sql.sql_functions import FIRST_MS, LAST_MS, from_ms_or_none, to_ms

_HIDDEN = "those who may see everything can tell"
# One that several memories state counts once. These are found by the index of them: as an
# expression the source asks for no other order.
_COUNT_LINKS = """
    SELECT (SELECT count(*) FROM link) - (SELECT count(*) FROM link WHERE stated_by <> '')
        + (SELECT count(*) FROM (SELECT DISTINCT s.src || '', s.type, s.dst FROM link AS s
            WHERE s.stated_by <> '' AND NOT EXISTS (SELECT 1 FROM link AS c WHERE c.src = s.src
                AND c.type = s.type AND c.dst = s.dst AND c.src_kind = 'entity'
                AND c.dst_kind = 'entity' AND c.stated_by = '')) AS stated)
"""
COUNTS = {
    "memories": "SELECT count(*) FROM item WHERE live_to IS NULL",
    "forgotten": "SELECT count(DISTINCT e.id) FROM item AS e WHERE e.live_to IS NOT NULL"
    f" AND e.ended_by NOT IN ('{WAITING}', '{REFUSED}')"
    " AND NOT EXISTS (SELECT 1 FROM item AS l WHERE l.id = e.id AND l.live_to IS NULL)",
    "revisions": "SELECT count(*) FROM item",
    "entities": "SELECT count(*) FROM entity",
    "links": _COUNT_LINKS,
    "threads": "SELECT count(DISTINCT id) FROM thread",
    "words": "SELECT count(*) FROM term",
    "vectors": "SELECT count(*) FROM vector WHERE key = rid",
    "passages": "SELECT count(*) FROM vector WHERE key <> rid",
    "unembedded": "SELECT count(*) FROM item"
    " WHERE live_to IS NULL AND rid NOT IN (SELECT rid FROM vector)",
    "erased": "SELECT count(*) FROM tombstone",
    "events": "SELECT count(*) FROM event",
}
# What statistics tell apart.
_SORTS = "level, kind, layer, tier, status, source_class"
_TALLY = f"SELECT {_SORTS}, count(*) FROM item WHERE live_to IS NULL GROUP BY {_SORTS}"
_WHOLE_MODELS = "SELECT name, slots - passages FROM model ORDER BY name"
_MODELS = """
    SELECT m.name, count(v.key) FROM model AS m
    LEFT JOIN vector AS v ON v.mid = m.mid AND v.key = v.rid
    GROUP BY m.mid, m.name ORDER BY m.name
"""
_ENDED_AS = """
    SELECT i.id FROM item AS i WHERE i.ended_by = ? AND i.status <> 'quarantined'
        AND i.rev = (SELECT max(l.rev) FROM item AS l WHERE l.id = i.id)
    ORDER BY i.live_to, i.rid
"""
_OF_ALL = ("generation", "bytes", "erased")
_OLDEST = f"""
    SELECT coalesce(occurred_at, stored_at) FROM item WHERE live_to IS NULL
        AND coalesce(occurred_at, stored_at) BETWEEN {FIRST_MS} AND {LAST_MS}
    ORDER BY coalesce(occurred_at, stored_at) LIMIT 1
"""
_TIME_SPAN = f"SELECT ({_OLDEST}), ({_OLDEST.replace(' LIMIT', ' DESC LIMIT')})"


def _count_groups(tally: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Count live items by each of some columns, most first."""
    found = {}
    for place, column in enumerate(_SORTS.split(", ")):
        counts: Counter[str] = Counter()
        for row in tally:
            if row[place] is not None:
                counts[row[place]] += row[-1]
        by_count = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        found[f"by_{column}"] = dict(by_count)
    return found


_STORED_BY = """
    SELECT DISTINCT e.item FROM event AS e
    WHERE e.kind IN ('stored', 'imported') AND e.actor LIKE '%:' || ?
        AND EXISTS (SELECT 1 FROM item WHERE id = e.item)
    ORDER BY 1
"""


class SqlAdmin:
    """Journal, statistics, export and checks of a space: `StoreAdmin`; a store adds its own."""

    def __init__(self, connections: Connections, space: str) -> None:
        self._connections = connections
        self._space = space

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]:
        with self._connections.read_transaction() as db:
            return history.read_journal(db, after, limit)

    def changes(self, *, item: str | None, actor: str | None, limit: int) -> list[Event]:
        with self._connections.read_transaction() as db:
            return history.read_newest_events(db, item, actor, limit)

    def stored_by(self, person: str) -> list[str]:
        with self._connections.read_transaction() as db:
            return [row[0] for row in select(db, _STORED_BY, (person,))]

    def log(self, kind: str, *, item: str | None, actor: str, detail: str, now: datetime) -> None:
        with self._connections.write_transaction() as db:
            history.write_line(db, kind, detail, actor=actor, now=now, item=item)

    def count(self) -> int:
        with self._connections.read_transaction() as db:
            return int(db.execute(COUNTS["memories"]).get)

    def stats(self) -> Json:
        with self._connections.read_transaction() as db:
            first, last = db.execute(_TIME_SPAN).get
            is_below = is_below_ceiling(db)
            counted: dict[str, int] = dict(select(db, _MODELS if is_below else _WHOLE_MODELS))
            stats = {
                "space": self._space,
                **self._describe(db),
                "generation": generation(db),
                "bytes": self._size_in_bytes(db),
                "oldest": from_ms_or_none(first),
                "newest": from_ms_or_none(last),
                **{name: db.execute(sql).get for name, sql in COUNTS.items()},
                **_count_groups(select(db, _TALLY)),
                "models": counted,
            }
            if not is_below:
                return stats
        # The whole store tells of what is hidden.
        models = {name: count for name, count in counted.items() if count}
        return {name: stats[name] for name in stats if name not in _OF_ALL} | {"models": models}

    def ended_as(self, how: str) -> list[str]:
        with self._connections.read_transaction() as db:
            return [row[0] for row in select(db, _ENDED_AS, (how,))]

    def refile(self, ids: Sequence[str], *, how: str, actor: str, now: datetime) -> list[str]:
        from bethink.store.sql import revisions  # start-up time: reading does without

        with self._connections.write_transaction() as db:
            restored = revisions.restore_items(db, ids, actor=actor, now=to_ms(now))
            return revisions.end_items(db, restored, how=how, actor=actor, now=to_ms(now))

    def _describe(self, db: Database) -> Json:
        """Return where the space is, and the versions of what it is kept in."""
        raise NotImplementedError

    def _size_in_bytes(self, db: Database) -> int:
        raise NotImplementedError

    def questions(self) -> list[Json]:
        with self._connections.read_transaction() as db:
            return history.read_questions(db)

    def change_questions(self, change: Callable[[list[Json]], list[Json]]) -> None:
        with self._connections.write_transaction() as db:
            history.change_questions(db, change)

    def generation(self) -> int:
        with self._connections.read_transaction() as db:
            return generation(db)

    def dump(self) -> Iterator[Json]:
        # start-up time: a recall needs none of it
        from bethink.store.sql.export import dump_records

        return dump_records(self._connections, self._space)

    def load(
        self,
        records: JsonObjects,
        *,
        actor: str,
        now: datetime,
        trusted: bool = True,
        personal_numbers: str = "none",
    ) -> int:
        # start-up time: a recall needs none of it
        from bethink.store.sql.load import Stranger, load_records

        with self._connections.write_transaction() as db:
            ceiling = self._connections.ceiling
            strange = None if trusted else Stranger(actor, personal_numbers)
            return load_records(
                db, records, actor=actor, now=to_ms(now), ceiling=ceiling, strange=strange
            )

    def check(self, *, repair: bool = False, progress: Progress | None = None) -> list[CheckResult]:
        if not self._connections.is_view:
            return self._run_checks(repair=repair, progress=progress)
        if repair:
            raise Refused("only those who may see everything can repair the store")
        found = self._run_checks(repair=False, progress=progress)
        # What is wrong may be above the ceiling.
        fine = {one.name for one in found if one.ok and not one.warning}
        return [one if one.name in fine else one._replace(detail=_HIDDEN) for one in found]

    def _run_checks(self, *, repair: bool, progress: Progress | None) -> list[CheckResult]:
        """Run all checks on everything there is; return one finding each."""
        raise NotImplementedError
