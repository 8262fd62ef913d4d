"""Changes as they happen: streams of server-sent events, and the sending of webhooks.

Both follow the journal of a view, so that nothing leaks that the view hides, and send kinds
and ids, never text. Other processes write as well, so the store is asked once a second.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic

from anyio import sleep, to_thread
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from bethink.access import webhooks
from bethink.access.policy import Principal, Right, permits, principal_now, principal_of
from bethink.core.json_values import Json
from bethink.core.sparse_log import SparseLog
from bethink.errors import BethinkError, StoreBusy
from bethink.server.tools.calls import ToolExecutor, for_caller, log_bug

POLL_S = 1.0
REPLAY = timedelta(hours=24)
MAX_STREAMS = 64
MAX_STREAMS_PER_CALLER = 8
_TURN_S = 10.0
_WEBHOOK = Principal("webhook", Right.READ)
_complain = SparseLog(logging.getLogger("bethink").error)  # a file is read every second


class EventStreams:
    """The open streams of a server, and the check whether anything has changed."""

    def __init__(self, executor: ToolExecutor) -> None:
        self._executor = executor
        self._open: list[str] = []  # the caller of each
        self._generation, self._read_at = -1, 0.0

    async def generation(self) -> int:
        """Return the store's generation of at most a second ago."""
        if self._generation < 0 or monotonic() - self._read_at >= POLL_S:
            self._read_at = monotonic()
            self._generation = await to_thread.run_sync(self._read_generation)
        return self._generation

    def _read_generation(self, principal: Principal | None = None) -> int:
        memory = self._executor.loader.memory()
        if principal is not None:
            memory = for_caller(memory, principal, self._executor.people)
        return memory.store.admin.generation()

    async def _generation_for(self, principal: Principal) -> int:
        """Return the generation of what a caller sees: a person has stores besides the space's."""
        if not principal.person:
            return await self.generation()
        return await to_thread.run_sync(self._read_generation, principal)

    def open(self, request: Request) -> EventSourceResponse:
        """Open a stream for a caller, of which each may have a few."""
        principal = principal_of(request.scope)
        caller = principal.person or principal.key or principal.name
        if len(self._open) >= MAX_STREAMS or self._open.count(caller) >= MAX_STREAMS_PER_CALLER:
            raise StoreBusy("too many streams are open", remedy="close one")
        self._open.append(caller)  # at once: others may be opened before this one begins
        return _Stream(self._messages(request), partial(self._open.remove, caller))

    async def _messages(self, request: Request) -> AsyncIterator[ServerSentEvent]:
        """Yield events for as long as the caller may see them: rights are checked for each."""
        given, seen = request.headers.get("last-event-id", ""), -1
        reader, told = webhooks.JournalReader(given), "reset" if given else "ready"
        while permits(principal := await principal_now(request.scope), "watch"):
            generation = await self._generation_for(principal)
            if generation == seen:
                await sleep(POLL_S)
                continue
            memory = await to_thread.run_sync(self._executor.memory_for, principal)
            events = await to_thread.run_sync(reader.read, memory.store)
            if events is None or (given and events and events[0].at < memory.now - REPLAY):
                await to_thread.run_sync(reader.go_to_end, memory.store)
                yield _message(told, reader.cursor, {})
                events = []
            given, told = "", "reset"
            for event in events:
                if not permits(await principal_now(request.scope), "watch"):
                    return
                reader.advance(event)
                yield _message(event.kind, reader.cursor, webhooks.event_json(event))
            seen = seen if len(events) >= webhooks.PAGE - 1 else generation


class _Stream(EventSourceResponse):
    """A stream that tells when it has ended, however that came."""

    def __init__(self, messages: AsyncIterator[ServerSentEvent], end: Callable[[], None]) -> None:
        super().__init__(messages, send_timeout=30)
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end()


def _message(kind: str, cursor: str, data: Json) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(data), event=kind, id=cursor, sep="\n")


class WebhookSender:
    """Sends what changes to the webhooks of a space, to each in the order of the journal."""

    def __init__(self, hooks: webhooks.WebhookStore, executor: ToolExecutor) -> None:
        self._hooks, self._executor, self._is_running = hooks, executor, True
        self._done: dict[str, int] = {}  # generation up to which a webhook has everything

    async def run(self, space: str, generation: Callable[[], Awaitable[int]]) -> None:
        """Send until cancelled. Webhooks take turns: a slow one delays the others little."""
        try:
            while True:
                try:
                    for hook in self._hooks.all():
                        if hook.space == space and hook.is_due(datetime.now(UTC)):
                            turn = partial(self._take_turn, hook, await generation())
                            await to_thread.run_sync(turn, abandon_on_cancel=True)
                except BethinkError as error:
                    _complain(f"webhooks: {error.message}")
                await sleep(POLL_S)
        finally:
            self._is_running = False  # a thread that sends ends after its message

    def _take_turn(self, hook: webhooks.Webhook, generation: int) -> None:
        try:
            if self._done.get(hook.name) != generation and self._send_page(hook):
                self._done[hook.name] = generation
        except BethinkError as error:
            _complain(f"webhook {hook.name}: {error.message}")
        except Exception as error:  # noqa: BLE001 - a server outlives its webhooks
            log_bug("webhook", error)

    def _send_page(self, hook: webhooks.Webhook) -> bool:
        """Send what follows the webhook's place; return whether that was all."""
        store = self._executor.memory_for(_WEBHOOK).store
        reader = webhooks.JournalReader(hook.cursor)
        events, give_up = reader.read(store), monotonic() + _TURN_S
        if events is None:
            reader.go_to_end(store)
            return self._send(hook, reader.cursor, "reset", {})
        for event in events:
            reader.advance(event)
            sent = self._send(hook, reader.cursor, event.kind, webhooks.event_json(event))
            if not sent or not self._is_running or monotonic() > give_up:
                return False
            hook = hook._replace(failures=0)
        return len(events) < webhooks.PAGE - 1

    def _send(self, hook: webhooks.Webhook, cursor: str, kind: str, data: Json) -> bool:
        if hook.wants(kind):
            status = webhooks.post_message(hook, cursor, kind, data)
            if not 200 <= status < 300:
                self._hooks.note_failure(hook, status)
                return False
        return self._hooks.change(hook, cursor=cursor, failures=0, next_at=None, status=0)
