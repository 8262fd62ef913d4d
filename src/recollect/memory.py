"""The facade: one object to remember with and to recall from."""

from __future__ import annotations

from recollect.facade.browsing import Browsing
from recollect.facade.extracting import Extracting
from recollect.facade.filing import Filing
from recollect.facade.maturing import Maturing
from recollect.facade.merging import Merging
from recollect.facade.opened import utc_now
from recollect.facade.recalling import Recalling
from recollect.facade.relating import Relating
from recollect.facade.topics import Topics
from recollect.facade.upkeep import Upkeep
from recollect.facade.writing import Forgotten, Writing

__all__ = ["Forgotten", "Memory", "utc_now"]


class Memory(
    Writing, Maturing, Recalling, Relating, Merging, Extracting, Browsing, Filing, Topics, Upkeep
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
