"""The facade: one class to store, recall, explain, correct and forget memories."""

from __future__ import annotations

from bethink.api.browse import BrowseMixin, ThreadsMixin
from bethink.api.files import FilesMixin
from bethink.api.links import EntityMergeMixin, LinksMixin
from bethink.api.maintenance import ExtractMixin, MaintenanceMixin, UpkeepMixin
from bethink.api.recall import RecallMixin
from bethink.api.session import utc_now
from bethink.api.write import Forgotten, WriteMixin

__all__ = ["Forgotten", "Memory", "utc_now"]


class Memory(
    WriteMixin,
    MaintenanceMixin,
    RecallMixin,
    LinksMixin,
    EntityMergeMixin,
    ExtractMixin,
    BrowseMixin,
    FilesMixin,
    ThreadsMixin,
    UpkeepMixin,
):
    """One space's memory: remember, recall, explain, correct, forget.

    Sync, typed and safe to share between threads. In async code call it through
    ``asyncio.to_thread``.

    >>> with Memory.open(":memory:") as memory:
    ...     _ = memory.remember("The deploy key lives in vault B")
    ...     answer = memory.recall("where is the deploy key?")
    ...     print(answer.hits[0].item.text)
    The deploy key lives in vault B
    """
