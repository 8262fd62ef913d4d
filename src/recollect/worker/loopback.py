"""A worker without unix sockets: a port of this machine alone, and a secret in a file.

Any user may call a port, and after a crash any program may have taken it. So each side
proves that it can read the file before anything else is said, and never says the secret.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import time
from pathlib import Path

from recollect.worker.frames import BadFrame, read_object

HOST = "127.0.0.1"
_NONCE = 16
_PROOF = 32
_MOST = 1 << 12  # bytes of the file


def listen(door: Path) -> tuple[socket.socket, bytes]:
    """A listening socket and its secret; both are written to the door, for the owner alone."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.bind((HOST, 0))
        sock.listen()
        secret = secrets.token_bytes(_PROOF)
        told = f'{{"port": {sock.getsockname()[1]}, "secret": "{secret.hex()}"}}'
        handle = os.open(door, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(told)
    except OSError:
        sock.close()
        raise
    return sock, secret


def connect(door: Path, deadline: float) -> socket.socket:
    """A connection to whoever knows the secret in the file."""
    port, secret = _read(door)
    sock = socket.create_connection((HOST, port), max(deadline - time.monotonic(), 0.001))
    try:
        theirs = _exactly(sock, _NONCE, deadline)
        ours = secrets.token_bytes(_NONCE)
        sock.sendall(ours + _proof(secret, b"caller", theirs, ours))
        if not hmac.compare_digest(
            _exactly(sock, _PROOF, deadline), _proof(secret, b"worker", theirs, ours)
        ):
            raise PermissionError("whoever has the port now is not the worker")
    except OSError:
        sock.close()
        raise
    return sock


def prove(sock: socket.socket, secret: bytes, deadline: float) -> None:
    """The worker's half: the caller first, for it came to us."""
    ours = secrets.token_bytes(_NONCE)
    sock.sendall(ours)
    said = _exactly(sock, _NONCE + _PROOF, deadline)
    theirs, proof = said[:_NONCE], said[_NONCE:]
    if not hmac.compare_digest(proof, _proof(secret, b"caller", ours, theirs)):
        raise PermissionError("a caller that does not know the secret")
    sock.sendall(_proof(secret, b"worker", ours, theirs))


def _read(door: Path) -> tuple[int, bytes]:
    with door.open("rb") as file:
        body = file.read(_MOST)
    try:
        told = read_object(body)
        port, secret = told["port"], bytes.fromhex(told["secret"])
    except (BadFrame, KeyError, TypeError, ValueError) as error:
        raise ConnectionError(f"{door} does not say where the worker is") from error
    if type(port) is not int or not 0 < port < 65_536 or len(secret) != _PROOF:
        raise ConnectionError(f"{door} does not say where the worker is")
    return port, secret


def _proof(secret: bytes, who: bytes, workers: bytes, callers: bytes) -> bytes:
    return hmac.digest(secret, who + workers + callers, "sha256")


def _exactly(sock: socket.socket, size: int, deadline: float) -> bytes:
    got = b""
    while len(got) < size:
        sock.settimeout(max(deadline - time.monotonic(), 0.001))
        part = sock.recv(size - len(got))
        if not part:
            raise ConnectionError("the other side hung up")
        got += part
    return got
