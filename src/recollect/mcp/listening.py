"""Listens at an address until it is told to stop, and then ends in good order."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.access.hosts import Address
from recollect.errors import BadSetting

HEAD_WITHIN_S = 10.0
TAKEN_WITHIN_S = 30.0
_LEAST_TAKEN = 16 * 1024  # bytes of an answer within that time
GOODBYE_WITHIN_S = 20
# More than the guard lets through: what is longer than that it refuses with a sentence.
_MOST_HEAD = 64 * 1024
_MOST_CONNECTIONS = 512


class Impatient(H11Protocol):
    """A connection that is closed where the head of a request takes too long, or where
    nobody takes the answer.

    The library waits for both forever, and a machine has only so many connections.
    """

    within_s = HEAD_WITHIN_S
    taken_within_s = TAKEN_WITHIN_S
    _patience: asyncio.TimerHandle | None = None
    _untaken: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._is_taken()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_again()

    def resume_writing(self) -> None:
        self._is_taken()
        super().resume_writing()

    def _look_again(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._untaken = self.loop.call_later(self.taken_within_s, self._look, left)

    def _look(self, before: int) -> None:
        """Slow is fine; standing still is not."""
        if before - self.transport.get_write_buffer_size() >= _LEAST_TAKEN:
            self._look_again()
        else:
            # To close would be to wait for the rest to be taken, too.
            self.transport.abort()

    def _is_taken(self) -> None:
        if self._untaken is not None:
            self._untaken.cancel()
            self._untaken = None

    def _wait(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(self.within_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


class _Server(uvicorn.Server):
    """A server for which being told to stop is an ordinary end, not a signal to die of."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {one: signal.signal(one, self.handle_exit) for one in signals}
        try:
            yield
        finally:
            for one, old in before.items():
                signal.signal(one, old)


def bound(address: Address) -> socket.socket:
    """A socket at that address, or BadSetting in the system's own words."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # By its protocol's number asyncio knows that small answers need not wait (TCP_NODELAY).
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        # From here on a client can connect; it waits until the server takes over.
        made.listen(128)
    except OSError as error:
        made.close()
        raise BadSetting(
            f"{address.shown} cannot be listened at: {(error.strerror or str(error)).lower()}",
            remedy="another port, or an address of this machine",
        ) from error
    return made


def listen(app: Any, at: socket.socket) -> None:
    """Serves an application until SIGTERM or SIGINT; what is being answered is finished."""
    # Questions stand in addresses (GET ?q=), so there is no log of requests.
    config = uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_MOST_HEAD,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=GOODBYE_WITHIN_S,
    )
    with at:
        _Server(config).run(sockets=[at])
