"""HTTP listener: bind a socket and run an ASGI application on uvicorn until a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
import sys
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from bethink.access.guard import App
from bethink.access.hosts import Address
from bethink.core.blas import give_back_freed_memory, share_memory_between_threads
from bethink.core.json_values import Json
from bethink.core.sparse_log import SparseLog
from bethink.errors import BadSetting

HEAD_TIMEOUT_S = 10.0
SEND_TIMEOUT_S = 30.0
_MIN_SENT_BYTES = 16 * 1024  # bytes of an answer within that time
SHUTDOWN_TIMEOUT_S = 20
# More than the guard allows, so that the guard refuses longer heads with a message.
_MAX_HEAD_BYTES = 64 * 1024
_MAX_CONNECTIONS = 512
_OWN_FILES = 32
_ACCEPTED_AT_ONCE = 8  # before the first of them is looked at
_QUEUED_BY_SYSTEM = 1024  # connections that are not accepted yet


def max_connections() -> int:
    """Return how many connections to hold: half of the files that may be open besides our own."""
    if sys.platform == "win32":
        return _MAX_CONNECTIONS
    import resource  # not on Windows

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    is_unlimited = files == resource.RLIM_INFINITY
    free = max(files - _OWN_FILES, 8)
    return _MAX_CONNECTIONS if is_unlimited else min(_MAX_CONNECTIONS, free // 2)


class TimeoutProtocol(H11Protocol):
    """HTTP/1.1 protocol with timeouts for the head of a request and for a stalled client.

    The library waits for both forever, and a machine has a limited number of connections.
    Above their number, who keeps the server waiting longest makes way for a new one.
    """

    head_timeout_s = HEAD_TIMEOUT_S
    send_timeout_s = SEND_TIMEOUT_S
    _head_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None
    _waiting_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head_timer()
        self.count_in(transport)

    def count_in(self, transport: asyncio.Transport) -> None:
        """Count a connection, and close one that waits if there are too many."""
        self.transport, self._waiting_since = transport, self.loop.time()
        self.connections.add(self)
        limit = max_connections()
        if len(self.connections) > limit:
            _sparse_log(f"there are more than {limit} connections: those that wait are closed")
            if not make_room(self.connections - {self}, 1):
                transport.abort()  # all others are being answered

    def on_response_complete(self) -> None:
        self._waiting_since = self.loop.time()
        super().on_response_complete()

    @property
    def waiting_since(self) -> float | None:
        """When the server began to wait for this client; None while it works for it.

        For a request, for the rest of one, or for an answer to be taken.
        """
        is_answering = self.cycle is not None and not self.cycle.response_complete
        is_sending = self.conn.their_state is h11.SEND_BODY or self._send_timer is not None
        return None if is_answering and not is_sending else self._waiting_since

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
        self._waiting_since = self.loop.time()
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


class _TlsProtocol(SSLProtocol):
    """TLS below HTTP. A connection counts before its handshake, which strangers may delay."""

    def __init__(self, tls: ssl.SSLContext, **made: Any) -> None:
        self._http = TimeoutProtocol(**made)
        more: Any = {"waiter": None, "server_side": True, "ssl_handshake_timeout": HEAD_TIMEOUT_S}
        super().__init__(self._http.loop, self._http, tls, **more)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._http.count_in(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._http.connections.discard(self._http)


_sparse_log = SparseLog(logging.getLogger("bethink").warning)


def make_room(connections: Collection[object], count: int) -> int:
    """Close up to ``count`` connections that keep the server waiting; return how many."""
    waiting = [
        (since, number, one)
        for number, one in enumerate(connections)
        if isinstance(one, TimeoutProtocol)
        and not one.transport.is_closing()
        and (since := one.waiting_since) is not None
    ]
    chosen = sorted(waiting)[:count]
    for _, _, one in chosen:
        one.transport.abort()
    return len(chosen)


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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(self._on_loop_error)
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_QUEUED_BY_SYSTEM)

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: Json) -> None:
        """Close connections that wait where a new one found no descriptor.

        The loop tries again a second later.
        """
        if "accept()" not in context["message"]:
            loop.default_exception_handler(context)
            return
        _sparse_log(f"no connection can be accepted: {context.get('exception')}")
        make_room(self.server_state.connections, _ACCEPTED_AT_ONCE)

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


def load_certificate(cert: str, key: str) -> ssl.SSLContext:
    """Load a certificate with its chain, and its key; raise BadSetting with the reason."""
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        made.load_cert_chain(cert, key, password=lambda: b"")  # else the terminal is asked for it
    except OSError as error:  # also what OpenSSL cannot read
        reason = getattr(error, "reason", None) or error.strerror or "it is not one"
        raise BadSetting(
            f"the certificate {cert} and its key cannot be used: {reason.lower()}",
            remedy="give two PEM files that belong together, the key without a passphrase",
        ) from error
    made.set_alpn_protocols(["http/1.1"])
    return made


def serve_until_signal(
    app: App, listener: socket.socket, tls: ssl.SSLContext | None = None
) -> None:
    """Serve an application until SIGTERM or SIGINT; requests in progress are finished."""
    share_memory_between_threads()
    protocol: Any = partial(_TlsProtocol, tls) if tls else TimeoutProtocol
    # URLs contain questions (GET ?q=), so requests are not logged.
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        loop="asyncio",
        backlog=_ACCEPTED_AT_ONCE,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        callback_notify=partial(asyncio.to_thread, give_back_freed_memory),
        timeout_notify=10,  # seconds
    )
    with listener:
        _Server(config).run(sockets=[listener])
