"""Connections to the worker: handshake, length-prefixed JSON frames, sockets.

A Unix socket only its user can reach or, without Unix sockets, a loopback port with a
shared secret in a file. Any user may connect to a port, and after a crash any program
may have taken it, so each side proves that it can read the file before anything else
is sent; the secret itself is never sent.
"""

from __future__ import annotations

import hmac
import json
import os
import selectors
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bethink import version
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.worker.files import WorkerPaths, installation_id, require_private

PROTOCOL_VERSION = 2


def own_handshake() -> list[int | str]:
    """Return what a worker and its caller must agree on: protocol, version, installation.

    The time of a file tells one installation from another of the same version in its place.
    """
    installed_at = os.stat(version.__file__).st_mtime_ns  # noqa: PTH116 - called for every request
    installation = f"{installation_id()} {installed_at}"
    return [PROTOCOL_VERSION, version.__version__, installation]


MAX_REQUEST_BYTES = 1 << 20  # bytes
MAX_REPLY_BYTES = 1 << 26
_LENGTH_PREFIX = struct.Struct(">I")
_RECV_BYTES = 1 << 16


class FrameError(ConnectionError):
    """An invalid message: too long, cut short, not JSON, or not an object."""


def encode_frame(message: Json, max_bytes: int) -> bytes:
    """Encode a message as a length-prefixed frame."""
    try:
        body = json.dumps(message, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise FrameError(f"the message is not JSON: {error}") from error
    if len(body) > max_bytes:
        raise FrameError(f"the message has {len(body):,} bytes; the limit is {max_bytes:,}")
    return _LENGTH_PREFIX.pack(len(body)) + body


def send_message(sock: socket.socket, message: Json, max_bytes: int, deadline: float) -> None:
    """Send a message completely, or raise by the deadline (of ``time.monotonic``)."""
    sock.settimeout(_seconds_left(deadline))
    sock.sendall(encode_frame(message, max_bytes))


def is_readable(sock: socket.socket, timeout_s: float) -> bool:
    """Wait until there is something to receive; return whether there is."""
    poll = selectors.DefaultSelector()
    with poll:
        poll.register(sock, selectors.EVENT_READ)
        return bool(poll.select(timeout_s))


def receive_message(sock: socket.socket, max_bytes: int, deadline: float) -> Json:
    """Receive the next message of at most ``max_bytes``, or raise by the deadline."""
    (length,) = _LENGTH_PREFIX.unpack(_receive_exactly(sock, _LENGTH_PREFIX.size, deadline))
    if length > max_bytes:
        raise FrameError(f"the message has {length:,} bytes; the limit is {max_bytes:,}")
    return parse_message(_receive_exactly(sock, length, deadline))


def parse_message(body: bytes) -> Json:
    """Parse a JSON object; raise FrameError for anything else."""
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FrameError("the message is not JSON") from error
    if not isinstance(value, dict):
        raise FrameError("the message is not an object")
    return value


def _receive_exactly(sock: socket.socket, size: int, deadline: float) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        sock.settimeout(_seconds_left(deadline))
        part = sock.recv(min(size - len(parts), _RECV_BYTES))
        if not part:
            raise FrameError("the connection was closed in the middle of a message")
        parts += part
    return bytes(parts)


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no time left")
    return left


HOST = "127.0.0.1"
_NONCE_BYTES = 16
_PROOF_BYTES = 32
_MAX_PORT_FILE_BYTES = 1 << 12  # bytes


@contextmanager
def _closed_on_failure(sock: socket.socket) -> Iterator[socket.socket]:
    """Yield a socket, and close it where that fails which is done with it."""
    try:
        yield sock
    except OSError:
        sock.close()
        raise


def listen_on_loopback(port_file: Path) -> tuple[socket.socket, bytes]:
    """Open a loopback socket; write its port and secret to a file of the owner."""
    with _closed_on_failure(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as sock:
        sock.bind((HOST, 0))
        sock.listen()
        secret = os.urandom(_PROOF_BYTES)
        content = f'{{"port": {sock.getsockname()[1]}, "secret": "{secret.hex()}"}}'
        handle = os.open(port_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(content)
    return sock, secret


def connect_to_loopback(port_file: Path, deadline: float) -> socket.socket:
    """Connect to the process that proves it knows the secret in the file."""
    port, secret = _read_port_file(port_file)
    timeout_s = max(deadline - time.monotonic(), 0.001)
    with _closed_on_failure(socket.create_connection((HOST, port), timeout_s)) as sock:
        theirs = _receive_exactly(sock, _NONCE_BYTES, deadline)
        ours = os.urandom(_NONCE_BYTES)
        sock.sendall(ours + _hmac_proof(secret, b"caller", theirs, ours))
        if not hmac.compare_digest(
            _receive_exactly(sock, _PROOF_BYTES, deadline),
            _hmac_proof(secret, b"worker", theirs, ours),
        ):
            raise PermissionError("the process on this port is not the worker")
    return sock


def authenticate_caller(sock: socket.socket, secret: bytes, deadline: float) -> None:
    """Authenticate a caller on the worker's side; the caller proves itself first."""
    ours = os.urandom(_NONCE_BYTES)
    sock.sendall(ours)
    message = _receive_exactly(sock, _NONCE_BYTES + _PROOF_BYTES, deadline)
    theirs, proof = message[:_NONCE_BYTES], message[_NONCE_BYTES:]
    if not hmac.compare_digest(proof, _hmac_proof(secret, b"caller", ours, theirs)):
        raise PermissionError("the caller does not know the secret")
    sock.sendall(_hmac_proof(secret, b"worker", ours, theirs))


def _read_port_file(port_file: Path) -> tuple[int, bytes]:
    with port_file.open("rb") as file:
        body = file.read(_MAX_PORT_FILE_BYTES)
    try:
        content = parse_message(body)
        port, secret = content["port"], bytes.fromhex(content["secret"])
    except (FrameError, KeyError, TypeError, ValueError) as error:
        raise ConnectionError(f"{port_file} does not contain the worker's port") from error
    if type(port) is not int or not 0 < port < 65_536 or len(secret) != _PROOF_BYTES:
        raise ConnectionError(f"{port_file} does not contain the worker's port")
    return port, secret


def _hmac_proof(secret: bytes, role: bytes, worker_nonce: bytes, caller_nonce: bytes) -> bytes:
    return hmac.digest(secret, role + worker_nonce + caller_nonce, "sha256")


_BACKLOG = 64
_PEER_CREDENTIALS = struct.Struct("3i")  # process, user, group


class Listener(NamedTuple):
    """A listening socket; ``secret`` is what a caller over a port must know."""

    sock: socket.socket
    secret: bytes = b""


def listen(paths: WorkerPaths) -> Listener:
    """Open the worker's socket.

    Only the holder of the lock may: a socket left by a killed worker is removed.
    """
    paths.socket_path.unlink(missing_ok=True)
    if not paths.unix:
        return Listener(*listen_on_loopback(paths.socket_path))
    with _closed_on_failure(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as sock:
        before = os.umask(0o177)
        try:
            sock.bind(str(paths.socket_path))
        finally:
            os.umask(before)
        sock.listen(_BACKLOG)
    return Listener(sock)


def connect(paths: WorkerPaths, deadline: float) -> socket.socket:
    """Connect to the worker; raise OSError where there is none to trust."""
    require_private(paths.folder)
    if not paths.unix:
        return connect_to_loopback(paths.socket_path, deadline)
    with _closed_on_failure(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as sock:
        sock.settimeout(max(deadline - time.monotonic(), 0.001))
        sock.connect(str(paths.socket_path))
        require_same_user(sock)
    return sock


def authorize_caller(sock: socket.socket, listener: Listener, deadline: float) -> None:
    """Raise OSError where the caller is not authorized."""
    if listener.secret:
        authenticate_caller(sock, listener.secret, deadline)
    else:
        require_same_user(sock)


def require_same_user(sock: socket.socket) -> None:
    """Raise PermissionError where the peer runs as another user.

    Checked by the kernel's peer credentials; without them, the private folder protects.
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return
    raw = sock.getsockopt(socket.SOL_SOCKET, option, _PEER_CREDENTIALS.size)
    _, user, _ = _PEER_CREDENTIALS.unpack(raw)
    if user != os.geteuid():
        raise PermissionError(f"the peer runs as another user ({user})")
