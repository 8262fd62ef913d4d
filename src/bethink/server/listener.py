"""HTTP listener: bind a socket and run an ASGI application on uvicorn until a signal."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from bethink.access.guard import Guard
from bethink.access.hosts import Address
from bethink.errors import BadSetting

HEAD_TIMEOUT_S = 10.0
SEND_TIMEOUT_S = 30.0
_MIN_SENT_BYTES = 16 * 1024  # bytes of an answer within that time
SHUTDOWN_TIMEOUT_S = 20
# More than the guard allows, so that the guard refuses longer heads with a message.
_MAX_HEAD_BYTES = 64 * 1024
_MAX_CONNECTIONS = 512


class TimeoutProtocol(H11Protocol):
    """HTTP/1.1 protocol with timeouts for the head of a request and for a stalled client.

    The library waits for both forever, and a machine has a limited number of connections.
    """

    head_timeout_s = HEAD_TIMEOUT_S
    send_timeout_s = SEND_TIMEOUT_S
    _head_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._start_head_timer()
        else:
            self._cancel_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_head_timer()
        self._cancel_send_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._schedule_send_check()

    def resume_writing(self) -> None:
        self._cancel_send_timer()
        super().resume_writing()

    def _schedule_send_check(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._send_timer = self.loop.call_later(
            self.send_timeout_s, self._check_send_progress, left
        )

    def _check_send_progress(self, before: int) -> None:
        """Abort the connection if too few bytes were sent since the last check."""
        if before - self.transport.get_write_buffer_size() >= _MIN_SENT_BYTES:
            self._schedule_send_check()
        else:
            # close() would wait until the rest is sent.
            self.transport.abort()

    def _cancel_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_timeout_s, self._on_head_timeout)

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_head_timeout(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    before = {signum: signal.signal(signum, handler) for signum in _SIGNALS}
    try:
        yield
    finally:
        for signum, old in before.items():
            signal.signal(signum, old)


class _Stopped(BaseException):
    """A signal came while the server was starting or closing."""


def _stop(_signum: int, _frame: FrameType | None) -> None:
    raise _Stopped


@contextmanager
def ended_by_signal() -> Iterator[None]:
    """Let SIGINT and SIGTERM end a block as cleanly as a server that runs."""
    try:
        with _handled_by(_stop):
            yield
    except _Stopped:
        return


class _Server(uvicorn.Server):
    """A uvicorn server for which SIGINT and SIGTERM are a normal shutdown."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        with _handled_by(self.handle_exit):
            yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        # After a second Ctrl-C no request is waited for; the application still ends in order.
        if self.force_exit:
            await self.lifespan.shutdown()


def bind_socket(address: Address) -> socket.socket:
    """Bind and listen on an address; raise BadSetting with the system's error."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With the protocol number set, asyncio enables TCP_NODELAY.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        # From here on a client can connect; it waits until the server takes over.
        made.listen(128)
    except OSError as error:
        made.close()
        raise BadSetting(
            f"{address.netloc} cannot be bound: {(error.strerror or str(error)).lower()}",
            remedy="use another port, or an address of this machine",
        ) from error
    return made


def serve_until_signal(app: Guard, listener: socket.socket) -> None:
    """Serve an application until SIGTERM or SIGINT; requests in progress are finished."""
    # URLs contain questions (GET ?q=), so requests are not logged.
    config = uvicorn.Config(
        app,
        http=TimeoutProtocol,
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
    )
    with listener:
        _Server(config).run(sockets=[listener])
