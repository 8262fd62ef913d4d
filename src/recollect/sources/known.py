"""What a space knows of a source already: what is new in it, what changed, what did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple

from recollect.ingest.revise import changeable
from recollect.ingest.settle import FACT
from recollect.model import Draft, Item
from recollect.ports import Store
from recollect.sources.readiness import IMPORTED, Ready, key_of, words_mark

MOST_IN_GROUP = 5_000
_WIDEST_GAP = 16
_MOST_COMPARED = 64  # of a group, on either side; where more changed, they are new
_ALIKE = 0.5
_LONGEST_COMPARED = 2_000  # characters
_TAKEN_OVER = changeable() - {"source", "metadata", "pinned", "trust"}
_NOTHING = Draft("")


class Verdict(NamedTuple):
    """What an entry is to a space; ``item`` is what it was stored as before."""

    what: Literal["new", "known", "changed"]
    ready: Ready
    item: Item | None = None


def judged(ready: Ready, store: Store) -> Verdict:
    """What becomes of an entry that has a name of its own, or is known by its words."""
    found = store.find_key(ready.key) if ready.key else None
    if found is None:
        return Verdict("new", ready)
    item = store.get([found[0]]).get(found[0])
    if item is None or version_in(item.metadata, ready.key) == ready.version:
        return Verdict("known", ready, item)
    if item.live_to is not None or item.status == "quarantined":
        # Whoever forgot or revoked it here has the last word.
        return Verdict("known", ready, item)
    if not _is_its_own(item, ready.key) or _is_edited(item):
        return _beside(ready, item, store)
    return Verdict("changed", ready, item)


def _beside(ready: Ready, item: Item, store: Store) -> Verdict:
    """An entry whose memory is not the source's to change, because somebody else had stored
    the same words first, or has corrected them since: a later version stands beside it."""
    if any(revision.text == ready.draft.text for revision in store.history(item.id)):
        return Verdict("known", ready, item)
    later = ready.keyed(key_of(ready.key, ready.version))
    return Verdict("known" if store.find_key(later.key) else "new", later)


def version_in(metadata: Mapping[str, Any], key: str) -> str | None:
    """The version of an entry that an item was last made from; None where it was not."""
    mark = metadata.get(IMPORTED)
    if not isinstance(mark, Mapping) or mark.get("key") != key:
        return None
    return str(mark.get("version"))


def _is_its_own(item: Item, key: str) -> bool:
    return version_in(item.metadata, key) is not None


def _is_edited(item: Item) -> bool:
    """Whether its words are no longer those that the import had stored."""
    mark = item.metadata.get(IMPORTED)
    return isinstance(mark, Mapping) and mark.get("words") != words_mark(item.text)


def placed(group: str, kind: str, came: Sequence[Ready], store: Store) -> list[Ready]:
    """Entries of a group with the keys they are known by.

    What says the same as before is what it was; what says nearly the same as something
    that is no longer there has changed; all else is new.
    """
    slots = _slots(group, kind, store)
    keys = _unchanged(came, slots)
    gone = slots.keys() - set(keys.values())
    vacant = {
        key: slots[key]
        for key in gone
        if slots[key].live_to is None and _is_its_own(slots[key], key)
    }
    keys |= _changed({n: one for n, one in enumerate(came) if n not in keys}, vacant)
    numbers = (key_of(kind, f"{group}#{number}") for number in count())
    free = (key for key in numbers if key not in slots and store.find_key(key) is None)
    return [ready.keyed(keys.get(n) or next(free)) for n, ready in enumerate(came)]


def _slots(group: str, kind: str, store: Store) -> dict[str, Item]:
    """What was stored of a group, by the keys it has; what was erased left gaps."""
    ids: dict[str, str] = {}
    missed = 0
    for number in range(MOST_IN_GROUP):
        key = key_of(kind, f"{group}#{number}")
        found = store.find_key(key)
        missed = 0 if found else missed + 1
        if found is not None:
            ids[key] = found[0]
        elif missed > _WIDEST_GAP:
            break
    items = store.get(list(ids.values()))
    return {key: items[own] for key, own in ids.items() if own in items}


def _unchanged(came: Sequence[Ready], slots: Mapping[str, Item]) -> dict[int, str]:
    """Entries that say what they said, by their places: in their own items or, where
    somebody else had stored the same words first, in those."""
    versions = {version_in(item.metadata, key): key for key, item in slots.items()}
    texts = {item.text: key for key, item in slots.items() if not _is_its_own(item, key)}
    keys: dict[int, str] = {}
    for place, ready in enumerate(came):
        key = versions.pop(ready.version, None) or texts.pop(ready.draft.text, None)
        if key is not None:
            keys[place] = key
    return keys


def _changed(came: Mapping[int, Ready], vacant: dict[str, Item]) -> dict[int, str]:
    """Which of the entries are what which of the items has become."""
    if not vacant or len(vacant) > _MOST_COMPARED or len(came) > _MOST_COMPARED:
        return {}
    alike = sorted(
        (-share, place, key)
        for place, ready in came.items()
        for key, item in vacant.items()
        if (share := _likeness(ready.draft.text, item.text)) >= _ALIKE
    )
    keys: dict[int, str] = {}
    for _, place, key in alike:
        if place not in keys and key in vacant:
            keys[place] = key
            del vacant[key]
    return keys


def _likeness(one: str, other: str) -> float:
    """The share of words that two texts have in common, without the name before them."""
    head, colon, _ = one.partition(": ")
    skipped = len(head) + len(colon) if colon and other.startswith(f"{head}: ") else 0
    first = Counter(one[skipped:_LONGEST_COMPARED].casefold().split())
    second = Counter(other[skipped:_LONGEST_COMPARED].casefold().split())
    return 2 * (first & second).total() / max(1, first.total() + second.total())


def changes_to(item: Item, ready: Ready) -> dict[str, Any]:
    """What an update has to say so that the item says what the source says now."""
    draft = ready.draft
    told = {
        name: getattr(draft, name)
        for name in _TAKEN_OVER
        if getattr(draft, name) not in (getattr(item, name, None), getattr(_NOTHING, name))
    }
    told["tags"], told["text"] = draft.tags, draft.text
    same = draft.text == item.text
    before = {key: value for key, value in item.metadata.items() if same or key != FACT}
    return {**told, "metadata": {**before, **ready.marked().metadata}}
