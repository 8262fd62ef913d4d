"""What a recall returns beside memories, looked up by its id: notes of a file, edges."""

from __future__ import annotations

from recollect.model import Item, Link
from recollect.ports import Notes, Store

NOTE = "note:"


def find_beside(item_id: str, store: Store, notes: Notes | None) -> Item | None:
    """The note or edge with this id; None where the id is none of theirs, or it is gone."""
    if item_id.startswith(NOTE):
        return notes.find(item_id) if notes is not None else None
    from recollect.channels.edges import PREFIX as EDGE  # start-up time: most ask for memories

    if item_id.startswith(EDGE):
        return _edge(item_id.removeprefix(EDGE), store)
    return None


def _edge(ways: str, store: Store) -> Item | None:
    path: list[Link] = []
    for way in ways.split(";"):
        src, _, rest = way.partition("|")
        kind, _, dst = rest.rpartition("|")
        link = next(
            (
                link
                for link in store.links_of([src], [kind], incoming=False)
                if link.dst.id == dst and link.src.kind == link.dst.kind == "entity"
            ),
            None,
        )
        if link is None:
            return None
        path.append(link)
    from recollect.channels.edges import way_item  # start-up time, see above

    return way_item(tuple(path), {}) if path else None
