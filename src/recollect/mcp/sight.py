"""What a caller may see of a memory: nothing above the classification that is set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import NotFound

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.model import Item


_REMEDY = "recall finds memories and their ids"


def seen(memory: Memory, item_id: str) -> Item:
    """One memory by its id; one that may not be seen is not there."""
    try:
        item = memory.get(item_id)
    except NotFound as error:
        raise NotFound(error.message, remedy=_REMEDY) from error
    if item.classification > memory.settings.max_classification:
        raise NotFound(f"there is no memory {item_id!r}", remedy=_REMEDY)
    return item
