"""What the operations of all devices make of one memory. Pure: no database, no clock.

The result depends on the set of operations alone, never on the order in which they came. They
are sorted by their clock, which is later than that of every operation on the same memory that
their device had seen; the state after each revision is a row. What two devices did without
knowing of each other is concurrent: both are kept, and what cannot hold at once is a conflict.

An operation of another machine is folded if it can be one, by the types of its kind. What
cannot is held: kept and passed on as it came, until a version that understands it reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from bethink.core.characters import find_unstorable
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.model.fields import ITEM_FIELDS
from bethink.ports import is_span
from bethink.store.sql.rows import CONTENT

OWN_FIELDS = tuple(name for name in CONTENT if name not in ("id", "rev", "live_from"))
_FIELDS = {field.name: field for field in ITEM_FIELDS if field.name in OWN_FIELDS}
_EMPTY = {"words": "[]", "object": "{}"}
# Values that are not said; they are part of the format, and never change.
DEFAULTS: Json = {"about": "", "sketch": []}
DEFAULTS |= {name: _EMPTY[one.kind] for name, one in _FIELDS.items() if one.kind in _EMPTY}
DEFAULTS |= {name: None for name, one in _FIELDS.items() if one.nullable}
# Fields that a whole revision always says, and one that only changes something never does.
WHOLE = frozenset({*OWN_FIELDS, "sketch"} - DEFAULTS.keys())
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # of a date
EDGE = ">"  # before the mark of a relation between entities: operations on it
MERGED = "same_as"
_PLACES = {"merge": "=", "split": "=", "edge": EDGE}
_DECODER = json.JSONDecoder(parse_constant=int)  # fails at infinite numbers
Shape = Any  # a type, a check, a list of one shape, a tuple of several, or a dict of names


def parse_op(line: str) -> tuple[list[Any] | None, bool]:
    """Return the operation of a line, if it can be kept, and whether it is understood."""
    try:
        line.encode()  # fails at half a character
        row = _DECODER.decode(line)
        is_head = isinstance(row, list) and [type(value) for value in row] == _HEAD
        if not is_head or not is_span(row[0], row[1:2] * 2) or row[5] == "erased":
            return None, False
        if not (_count(row[3]) and _time(row[4]) and _count(row[7])):
            return None, False
        if is_odd := "\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()
            if not _fits(row[:8]):
                return None, False
    except (ValueError, TypeError, RecursionError):
        return None, False
    try:
        fits = _is(row[8], _SHAPES[row[5]]) and not (is_odd and not _fits(row[8]))
    except (ValueError, TypeError, LookupError, RecursionError, AttributeError):
        return row, False
    first = row[6][:1] if row[6][:1] in ("=", EDGE) else ""
    return row, fits and _PLACES.get(row[5], "") == first


def _is(value: Any, shape: Shape) -> bool:
    """Whether a value has a shape; a name that ends with ``?`` may be missing."""
    if isinstance(shape, type):
        return isinstance(value, shape) and not isinstance(value, bool)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_is(one, shape[0]) for one in value)
    if isinstance(shape, tuple):
        is_long = isinstance(value, list) and len(value) == len(shape)
        return is_long and all(map(_is, value, shape))
    if not isinstance(shape, dict):
        return bool(shape(value))
    return isinstance(value, dict) and all(
        name[-1] == "?" if (key := name.rstrip("?")) not in value else _is(value[key], inner)
        for name, inner in shape.items()
    )


def _fits(value: Any) -> bool:
    """Whether a database keeps all texts of it."""
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else ()
        return all(map(_fits, value)) and all(map(_fits, inner))
    return not isinstance(value, str) or not find_unstorable(value)


def _all(key: Callable[[str], object], shape: Shape) -> Callable[[Any], bool]:
    """Return the shape of objects with any number of such names and values."""
    return lambda value: (
        isinstance(value, dict)
        and all(key(name) and _is(one, shape) for name, one in value.items())
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and -(2**53) < value < 2**53


def _band(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _link(value: Any) -> bool:
    *texts, (weight, confidence, context, source, at) = value
    is_plain = _number(weight) and _number(confidence) and _time(at)
    is_plain = is_plain and (context is None or type(context) is str)
    return is_plain and [type(one) for one in (*texts, source)] == [str] * 7


def _edge(value: Any) -> bool:
    between = (value[0], value[3], value[5]) == ("entity", "entity", "")
    return _link(value) and between and value[2] != MERGED


def _count(value: Any) -> bool:
    return type(value) is int and abs(value) < 2**53


def _time(value: Any) -> bool:
    return type(value) is int and _FIRST_MS <= value <= _LAST_MS


_PLAIN: dict[str, Shape] = {
    "whole": _count,
    "flag": lambda value: value in (0, 1),
    "time": _time,
    "number": _number,
    "words": lambda value: value == "[]" or (_is(said := json.loads(value), [str]) and _fits(said)),
    "object": lambda value: value == "{}" or isinstance(json.loads(value), dict),
}


_TEXTS = {name for name, one in _FIELDS.items() if one.kind in ("text", "word", "id")}


def _are_fields(fields: Any) -> bool:
    return all(
        (name in _TEXTS and type(value) is str)
        or (_is(value, [_band]) if name == "sketch" else _is_field(name, value))
        for name, value in fields.items()
    )


@lru_cache(maxsize=4096, typed=True)  # most memories have the same
def _is_field(name: str, value: Any) -> bool:
    """Whether a field of a memory can have a value; what this version does not know has none."""
    field = _FIELDS.get(name)
    if field is None:  # words to find it by, and its fingerprint
        return isinstance(value, str) and name in OWN_FIELDS
    if value is None or field.kind in _PLAIN:
        return field.nullable if value is None else _is(value, _PLAIN[field.kind])
    if field.kind == "scale":
        return _is(value, int) and field.low <= value <= field.high
    return isinstance(value, str) and (not field.choices or value in field.choices)


def _is_rev(data: Any) -> bool:
    return _is(data, _REV) and data.get("set", {}).keys() >= set(data.get("changed", ()))


_HEAD = [str, int, str, int, int, str, str, int, dict]
_REV = {
    "set?": _are_fields,
    "delta?": _all(lambda name: _FIELDS[name].kind == "words", ([str], [str])),
    "changed?": [str],
}
_KEY = (str,) * 6
_MERGE = {"kept": str}
_SHAPES: dict[str, Shape] = {
    "rev": _is_rev,
    "end": {"how": str},
    "status": {"status": lambda value: value in ("active", "superseded", "quarantined")},
    "parent": {"parent": str},
    "link": {
        "add": [_link],
        "drop?": [_KEY],
        "entities?": _all(str, (str, str, [str])),
    },
    "key": {"keys": [(str, str, _time)]},
    "use": {
        "recalls": _count,
        "stamps": [_time],
        "days": _all(re.compile(r"-?[0-9]{1,7}").fullmatch, _count),
    },
    "seen": _all(str, _count),
    "edge": {"add?": _edge},
    "merge": _MERGE,
    "split": _MERGE,
    "withdraw": {}, "settle": {}, "erase": {},
}  # fmt: skip


Vector = Mapping[str, int]  # of each series: up to which number a device has seen it
LinkKey = tuple[str, ...]
_KINDS = ("rev", "end", "withdraw", "parent", "status", "link", "key", "use")
WITHDRAWN = "withdrawn"  # why a memory ended that became too classified for a reader
MAX_STAMPS = 20


class Op(NamedTuple):
    """One operation of a device on one memory.

    ``series`` is the device and the classification, ``number`` its place in it; ``mark`` is a
    hash of what it says, so that copies of one backup say the same. ``at`` is when it
    happened, ``clock`` orders it, ``seen`` is what its device had seen of others then.
    """

    series: str
    number: int
    mark: str
    clock: int
    at: int
    kind: str
    item: str
    seen: Vector
    data: Json

    @property
    def device(self) -> str:
        """The device that it comes from."""
        return self.series.partition(".")[0]

    @property
    def level(self) -> int:
        """The classification of the memory after it."""
        return level_of(self.series)

    def saw(self, other: Op) -> bool:
        """Whether its device knew of another operation on the same memory."""
        if self.device == other.device:
            return self.clock > other.clock
        return self.seen.get(other.series, 0) >= other.number


class FoldedRow(NamedTuple):
    """A revision: its fields by name, how long it was live, how it ended, its status."""

    fields: Json
    live_from: int
    live_to: int | None
    ended_by: str | None
    status: str


class Conflict(NamedTuple):
    """What a device did without knowing of another change: ``edited``, ``forgotten``, ``replaced``.

    ``rev`` is the revision that holds its text; 0 where there is none.
    """

    kind: str
    device: str
    at: int
    rev: int


class Folded(NamedTuple):
    """What the operations on one memory amount to; no rows where the first one is missing."""

    rows: tuple[FoldedRow, ...] = ()
    statuses: tuple[tuple[int, str], ...] = ()
    links: Mapping[LinkKey, Sequence[Any]] = {}
    link_levels: Mapping[LinkKey, Collection[int]] = {}
    entities: Mapping[str, Sequence[Any]] = {}
    keys: Mapping[str, Sequence[Any]] = {}
    uses: Mapping[str, Json] = {}
    conflicts: tuple[Conflict, ...] = ()
    clock: int = 0
    erased: bool = False


def level_of(series: str) -> int:
    """Return the classification of a series."""
    return int(series.partition(".")[2])


def place(op: Op) -> tuple[int, str, int, str]:
    """Return by what operations on one memory are sorted."""
    return (op.clock, op.series, op.number, op.mark)


def fold(ops: Iterable[Op], erased: Collection[str] = ()) -> Folded:
    """Return what operations on one memory make of it; ``erased`` are memories that are gone."""
    copies: dict[str, list[Op]] = {}  # copies of one backup say the same
    for op in sorted(ops, key=place):
        copies.setdefault(op.mark, []).append(op)
    ordered = [found[0] for found in copies.values()]
    if any(op.kind == "erase" for op in ordered):
        return Folded(erased=True)
    folding = _Folding(ordered, copies, erased)
    for op in ordered:
        folding.take(op)
        folding.note_status(op.at)
    return folding.result()


class _Folding:
    """The state of a memory while its operations are applied in order."""

    def __init__(
        self, ops: Sequence[Op], copies: Mapping[str, Sequence[Op]], erased: Collection[str]
    ) -> None:
        self._ops, self._copies, self._erased = ops, copies, erased
        self._is_shared = len({op.device for found in copies.values() for op in found}) > 1
        raised = {(op.at, op.clock + 1): op.level for op in ops if op.kind == "rev"}
        # Withdrawals by a revision that is above what this machine sees.
        self._hidden = [
            op for op in ops
            if op.kind == "withdraw" and raised.get((op.at, op.clock), 0) <= op.level
        ]  # fmt: skip
        self._fields: Json = {}
        self._rows: list[FoldedRow] = []
        self._revs: list[Op] = []
        # What nothing has replaced: statuses, classifications, withdrawals.
        self._standing: list[tuple[Op, str]] = []
        self._levels: list[tuple[Op, int]] = []
        self._withdrawn: list[Op] = []
        self._above = ""  # the parent, where that is above the classification of the memory
        self._statuses: dict[int, str] = {}
        self._last = (0, "active")
        self._links: dict[LinkKey, list[tuple[Op, Sequence[Any]]]] = {}
        self._entities: dict[str, Sequence[Any]] = {}
        self._keys: dict[str, Sequence[Any]] = {}
        self._uses: dict[str, Json] = {}
        self._conflicts: list[tuple[Op, Op, Conflict]] = []

    def take(self, op: Op) -> None:
        """Apply the next operation."""
        if op.kind in _KINDS:
            getattr(self, f"_{op.kind}")(op)

    def _saw(self, one: Op, other: Op) -> bool:
        """Whether the device of an operation, or of a copy of it, knew of another one."""
        if not self._is_shared:
            return one.clock > other.clock
        others = self._copies[other.mark]
        return any(copy.saw(known) for copy in self._copies[one.mark] for known in others)

    def _rev(self, op: Op) -> None:
        given = op.data.get("set", {})
        is_whole = given.keys() >= WHOLE
        if not self._rows and not is_whole:
            return  # what it changes has not come yet
        if self._rows and not self._hidden and "changed" in op.data:
            given, is_whole = {name: given[name] for name in op.data["changed"]}, False
        self._find_edits(op)
        if "about" in given and not is_whole:
            given = given | {"about": self._merge_about(op, given["about"])}
        self._fields = (DEFAULTS if is_whole else self._fields) | given
        for name, (added, removed) in op.data.get("delta", {}).items():
            self._fields[name] = change_list(self._fields.get(name) or "[]", added, removed)
        if "classification" in given:
            self._levels = [one for one in self._levels if not self._saw(op, one[0])]
            self._levels.append((op, given["classification"]))
        # Of changes at once the highest holds: who raised it did so for a reason.
        self._fields["classification"] = max(level for _, level in self._levels)
        if any(self._saw(op, one) for one in self._withdrawn):
            self._end_withdrawn()
            self._withdrawn = [one for one in self._withdrawn if not self._saw(op, one)]
        begin = op.at
        if self._rows:
            last = self._rows[-1]
            begin = max(begin, last.live_from, last.live_to or last.live_from)
            if last.live_to is None:
                self._rows[-1] = last._replace(live_to=begin, ended_by="revised")
        self._rows.append(FoldedRow(self._fields, begin, None, None, self._last[1]))
        self._revs.append(op)

    def _merge_about(self, op: Op, about: str) -> str:
        """What the memory is found under, with the changes that the operation did not know."""
        known = zip(reversed(self._revs), reversed(self._rows), strict=True)
        base = next((row.fields["about"] for rev, row in known if self._saw(op, rev)), "").split()
        now, new = self._fields["about"].split(), about.split()
        if now == base:
            return about
        words = (*now, *new)
        return " ".join(dict.fromkeys(w for w in words if w not in base or (w in now and w in new)))

    def _end(self, op: Op) -> None:
        for rev in self._concurrent(op):
            self._add_conflict(op, rev, Conflict("forgotten", op.device, op.at, 0))
        if all(self._saw(op, rev) for rev in self._revs):
            self._end_last(op.at, op.data["how"])

    def _end_last(self, at: int, how: str) -> None:
        if self._rows and self._rows[-1].live_to is None:
            end = max(at, self._rows[-1].live_from)
            self._rows[-1] = self._rows[-1]._replace(live_to=end, ended_by=how)

    def _withdraw(self, op: Op) -> None:
        self._withdrawn += [op] if op in self._hidden else []

    def _end_withdrawn(self) -> None:
        self._end_last(max(op.at for op in self._withdrawn), WITHDRAWN)

    def _parent(self, op: Op) -> None:
        self._above = op.data["parent"]

    def _status(self, op: Op) -> None:
        status = op.data["status"]
        self._standing = [one for one in self._standing if not self._saw(op, one[0])]
        judged = self._concurrent(op) if status == "superseded" else []
        unaware = [rev for rev in judged if "text" in rev.data.get("set", {})]
        for rev in unaware:  # it judged another text
            self._add_conflict(op, rev, Conflict("replaced", op.device, op.at, 0))
        if not unaware:
            self._standing.append((op, status))

    def note_status(self, at: int) -> None:
        """Keep when the status changed."""
        statuses = {status for _, status in self._standing}
        now = "quarantined" if "quarantined" in statuses else max(statuses, default="active")
        if now != self._last[1]:
            self._last = (max(at, self._last[0]), now)
            self._statuses[self._last[0]] = now
        if self._rows and self._rows[-1].status != now:
            self._rows[-1] = self._rows[-1]._replace(status=now)

    def _link(self, op: Op) -> None:
        for key in op.data.get("drop", ()):
            held = self._links.get(tuple(key), [])
            self._links[tuple(key)] = [one for one in held if not self._saw(op, one[0])]
        for *key, values in op.data.get("add", ()):
            held = self._links.setdefault(tuple(key), [])
            held[:] = [*(one for one in held if not self._saw(op, one[0])), (op, values)]
        self._entities |= op.data.get("entities", {})

    def _key(self, op: Op) -> None:
        for key, *rest in op.data["keys"]:
            self._keys.setdefault(key, rest)

    def _use(self, op: Op) -> None:
        if op.data.get("base"):  # copies of one backup have counted the same
            self._uses[""] = max_use(self._uses.get("", {}), op.data)
        else:
            self._uses[op.device] = op.data

    def _concurrent(self, op: Op) -> list[Op]:
        """Return the changes of the memory that an operation and its device did not know."""
        if not self._is_shared:
            return []
        revs = (one for one in self._ops if one.kind == "rev" and not self._saw(one, op))
        return [one for one in revs if not self._saw(op, one)]

    def _find_edits(self, op: Op) -> None:
        if not self._is_shared:
            return
        given = op.data.get("set", {})
        for number, rev in enumerate(self._revs, 1):
            before = rev.data.get("set", {})
            # What it is found under follows from other fields, which may differ.
            both = (given.keys() & before.keys()) - {"classification", "about"}
            differ = any(before[name] != given[name] for name in both)
            if differ and not self._saw(op, rev):
                self._add_conflict(rev, op, Conflict("edited", rev.device, rev.at, number))

    def _add_conflict(self, one: Op, other: Op, conflict: Conflict) -> None:
        """Keep a conflict, unless a device that knew both has decided since."""
        deciding = (op for op in self._ops if op.kind == "settle" or _decides(op))
        if not any(self._saw(op, one) and self._saw(op, other) for op in deciding):
            self._conflicts.append((one, other, conflict))

    def result(self) -> Folded:
        """Return the rows and the rest."""
        if self._withdrawn:
            self._end_withdrawn()
        return Folded(
            tuple(row._replace(fields=self._with_parent(row.fields)) for row in self._rows),
            tuple(sorted(self._statuses.items())),
            {key: held[-1][1] for key, held in self._links.items() if held},
            {key: {op.level for op, _ in held} for key, held in self._links.items()},
            self._entities,
            self._keys,
            self._uses,
            tuple(sorted({conflict for _, _, conflict in self._conflicts})),
            max((op.clock for op in self._ops), default=0),
        )

    def _with_parent(self, fields: Json) -> Json:
        parent = self._above or fields["parent"]
        told = None if parent in self._erased else parent
        return {**fields, "parent": told} if parent else fields


def _decides(op: Op) -> bool:
    """Whether an operation says anew what a memory says, or that it is gone."""
    return op.kind == "end" or (op.kind == "rev" and "text" in op.data.get("set", {}))


def change_list(stored: str, added: Iterable[str], removed: Iterable[str]) -> str:
    """Return a list of texts, as JSON, with some more and without others."""
    kept = [one for one in json.loads(stored) if one not in set(removed)]
    kept += [one for one in added if one not in kept]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def max_use(one: Json, other: Json) -> Json:
    """Return what two copies of one count of uses agree on: the larger number of each day."""
    days = dict(one.get("days", {}))
    for day, count in other.get("days", {}).items():
        days[day] = max(count, days.get(day, 0))
    stamps = sorted({*one.get("stamps", ()), *other.get("stamps", ())})[-MAX_STAMPS:]
    recalls = max(one.get("recalls", 0), other.get("recalls", 0))
    return {"base": True, "recalls": recalls, "days": days, "stamps": stamps}


def sum_uses(uses: Iterable[Json]) -> Json:
    """Return the uses on all devices together."""
    days: dict[str, int] = {}
    stamps: set[int] = set()
    recalls = 0
    for use in uses:
        recalls += use["recalls"]
        stamps.update(use["stamps"])
        for day, count in use["days"].items():
            days[day] = days.get(day, 0) + count
    return {"recalls": recalls, "days": days, "stamps": sorted(stamps)[-MAX_STAMPS:]}


def resolve_merges(ops: Iterable[Op]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return which entity is to be merged into which, in order, each with the merge it is from.

    Of two merges that contradict each other the earlier one holds. A split undoes the merges
    that its device had seen.
    """
    held: dict[tuple[str, str], Op] = {}
    for op in sorted(ops, key=place):
        ends = (op.item[1:], op.data["kept"])
        if op.kind == "merge":
            held.setdefault(ends, op)
        elif ends in held and op.saw(held[ends]):
            del held[ends]
    into: dict[str, str] = {}
    found = {}
    for gone, kept in sorted(held, key=lambda ends: place(held[ends])):
        start, end = _root(into, gone), _root(into, kept)
        if start != end:
            into[start] = end
            found[start, end] = (gone, kept)
    return found


def resolve_edges(ops: Mapping[str, Iterable[Op]]) -> dict[str, tuple[LinkKey, list[Any]]]:
    """Return the relations between entities that no memory states, by mark, with their values.

    The last that was added holds, unless a device that had seen all of them took it away.
    """
    found = {}
    for item, every in ops.items():
        copies: dict[str, list[Op]] = {}
        held: list[Op] = []
        for op in sorted(every, key=place):
            copies.setdefault(op.mark, []).append(op)
            held = [one for one in held if not any(map(op.saw, copies[one.mark]))]
            held += [op] if op.data else []
        if held:
            *key, values = held[-1].data["add"]
            found[item] = (tuple(key), values)
    return found


def _root(into: Mapping[str, str], entity: str) -> str:
    while entity in into:
        entity = into[entity]
    return entity
