"""`AsyncMemory`: the methods of `Memory`, awaited; the work is done on threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial, wraps
from itertools import islice
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from bethink.core.json_values import Json
from bethink.errors import StoreError
from bethink.memory import Memory

MAX_THREADS = 8  # each has a connection to the store
_EXPORT_BATCH = 200  # records
_P = ParamSpec("_P")
_T = TypeVar("_T")


async def finish(work: Future[_T], *, always: bool = False) -> _T:
    """Wait for the end of work that has begun, even if the caller is cancelled.

    What has not begun by then is not done, unless it is ``always`` to be done: so a change
    happens whole or not at all, and none is still to come when the caller goes on.
    """
    waiting = asyncio.wrap_future(work)
    try:
        return await (asyncio.shield(waiting) if always else waiting)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError, Exception):
                await asyncio.shield(asyncio.wrap_future(work))
        raise


def _own(method: Callable[..., _T], memory: AsyncMemory) -> Callable[..., _T]:
    """Return the method as the memory has it: that of one person has its own."""
    found: Callable[..., _T] = getattr(memory.sync, method.__name__)
    return found


def _reading(
    method: Callable[Concatenate[Memory, _P], _T],
) -> Callable[Concatenate[AsyncMemory, _P], Coroutine[Any, Any, _T]]:
    """Make the async method of one that changes no memory; a cancelled caller leaves at once."""

    @wraps(method)
    async def run(self: AsyncMemory, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.wrap_future(self._submit(partial(_own(method, self), *args, **kwargs)))

    return run


def _writing(
    method: Callable[Concatenate[Memory, _P], _T],
) -> Callable[Concatenate[AsyncMemory, _P], Coroutine[Any, Any, _T]]:
    """Make the async method of one that writes; what has begun is finished."""

    @wraps(method)
    async def run(self: AsyncMemory, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await finish(self._submit(partial(_own(method, self), *args, **kwargs)))

    return run


def _viewing(
    method: Callable[Concatenate[Memory, _P], Memory],
) -> Callable[Concatenate[AsyncMemory, _P], AsyncMemory]:
    """Make the method that returns another view of the same open space; it is not awaited."""

    @wraps(method)
    def run(self: AsyncMemory, /, *args: _P.args, **kwargs: _P.kwargs) -> AsyncMemory:
        return AsyncMemory(_own(method, self)(*args, **kwargs), threads=self._threads)

    return run


def _opening(
    open_memory: Callable[_P, Memory],
) -> Callable[_P, AbstractAsyncContextManager[AsyncMemory]]:
    @asynccontextmanager
    @wraps(open_memory)
    async def run(*args: _P.args, **kwargs: _P.kwargs) -> AsyncGenerator[AsyncMemory, None]:
        threads = ThreadPoolExecutor(MAX_THREADS, "bethink")
        work = threads.submit(copy_context().run, partial(open_memory, *args, **kwargs))
        try:
            memory = AsyncMemory(await finish(work, always=True), threads=threads)
        except BaseException:
            threads.shutdown(wait=False)
            if work.exception() is None:
                work.result().close()  # the caller was cancelled and will not
            raise
        async with memory:
            yield memory

    return run


class AsyncMemory:
    """One space's memory for asyncio: the methods of `Memory`, each with ``await``.

    Arguments, results and errors are those of `Memory`, which does the work on eight
    threads; further calls wait their turn. Any number of tasks may share it. A cancelled read
    ends at once. A cancelled write is finished first if it has begun, else it is not done.
    Functions that you give, such as ``progress``, are called on those threads. ``using`` and
    ``below`` are not awaited, ``export`` is read with ``async for``, and ``sync`` is the
    `Memory` itself.

    >>> async def main():
    ...     async with AsyncMemory.open(":memory:") as memory:
    ...         await memory.remember("The deploy key lives in vault B")
    ...         answer = await memory.recall("where is the deploy key?")
    ...         print(answer.hits[0].item.text)
    >>> asyncio.run(main())
    The deploy key lives in vault B
    """

    def __init__(self, memory: Memory, *, threads: ThreadPoolExecutor | None = None) -> None:
        """Use an open memory; ``AsyncMemory.open`` is the usual way."""
        self.sync = memory
        self._threads = threads or ThreadPoolExecutor(MAX_THREADS, "bethink")

    open = staticmethod(_opening(Memory.open))
    using = _viewing(Memory.using)
    below = _viewing(Memory.below)
    seen_by = _viewing(Memory.seen_by)

    allowed_roots = _reading(Memory.allowed_roots)
    anchored = _reading(Memory.anchored)
    browse = _reading(Memory.browse)
    code_states = _reading(Memory.code_states)
    compare = _reading(Memory.compare)
    conflicts = _reading(Memory.conflicts)
    entities = _reading(Memory.entities)
    events = _reading(Memory.events)
    explain = _reading(Memory.explain)
    file_memories = _reading(Memory.file_memories)
    get = _reading(Memory.get)
    history = _reading(Memory.history)
    inbox = _reading(Memory.inbox)
    insights = _reading(Memory.insights)
    links = _reading(Memory.links)
    maintenance = _reading(Memory.maintenance)
    profile = _reading(Memory.profile)
    profiles = _reading(Memory.profiles)
    questions = _reading(Memory.questions)
    recall = _reading(Memory.recall)
    recall_file = _reading(Memory.recall_file)
    recall_text = _reading(Memory.recall_text)
    stale = _reading(Memory.stale)
    stats = _reading(Memory.stats)
    stored = _reading(Memory.stored)
    sync_status = _reading(Memory.sync_status)
    thread = _reading(Memory.thread)
    threads = _reading(Memory.threads)
    timeline = _reading(Memory.timeline)
    why = _reading(Memory.why)
    why_not = _reading(Memory.why_not)

    accept = _writing(Memory.accept)
    answer_sync = _writing(Memory.answer_sync)
    boost = _writing(Memory.boost)
    build_insights = _writing(Memory.build_insights)
    carry_out = _writing(Memory.carry_out)
    demote = _writing(Memory.demote)
    doctor = _writing(Memory.doctor)
    drop_question = _writing(Memory.drop_question)
    extract = _writing(Memory.extract)
    forget = _writing(Memory.forget)
    forget_file = _writing(Memory.forget_file)
    import_ = _writing(Memory.import_)
    link = _writing(Memory.link)
    maintain = _writing(Memory.maintain)
    maintain_due = _writing(Memory.maintain_due)
    make_missing = _writing(Memory.make_missing)
    merge = _writing(Memory.merge)
    merge_entities = _writing(Memory.merge_entities)
    note_edits = _writing(Memory.note_edits)
    propose = _writing(Memory.propose)
    put_thread = _writing(Memory.put_thread)
    read_smart = _writing(Memory.read_smart)
    refuse = _writing(Memory.refuse)
    reindex = _writing(Memory.reindex)
    remember = _writing(Memory.remember)
    remember_each = _writing(Memory.remember_each)
    remember_many = _writing(Memory.remember_many)
    restore = _writing(Memory.restore)
    retire_machine = _writing(Memory.retire_machine)
    revoke = _writing(Memory.revoke)
    save_question = _writing(Memory.save_question)
    settle = _writing(Memory.settle)
    split_entities = _writing(Memory.split_entities)
    sync_with = _writing(Memory.sync_with)
    undo = _writing(Memory.undo)
    undo_run = _writing(Memory.undo_run)
    unlink = _writing(Memory.unlink)
    update = _writing(Memory.update)
    withdraw = _writing(Memory.withdraw)

    async def export(self) -> AsyncGenerator[Json, None]:
        """Export everything, losslessly, as JSON-ready records."""
        records = await finish(self._submit(lambda: (one for one in self.sync.export())))
        try:
            while batch := await finish(self._submit(lambda: [*islice(records, _EXPORT_BATCH)])):
                for record in batch:
                    yield record
        finally:
            records.close()

    def _submit(self, work: Callable[[], _T]) -> Future[_T]:
        try:
            return self._threads.submit(copy_context().run, work)
        except RuntimeError as error:
            raise StoreError("the memory was closed") from error

    async def close(self) -> None:
        """Wait for the calls that are running, then close the store."""
        closer = ThreadPoolExecutor(1)  # the others are waited for
        work = closer.submit(self._close)
        closer.shutdown(wait=False)
        await finish(work, always=True)

    def _close(self) -> None:
        self._threads.shutdown()
        self.sync.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
