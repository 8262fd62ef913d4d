"""Messages over a socket: a length in four bytes, then so many bytes of JSON."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

from recollect.jsonable import Json

MOST_ASKED = 1 << 20  # bytes of a request
MOST_ANSWERED = 1 << 26
_HEAD = struct.Struct(">I")
_AT_ONCE = 1 << 16


class BadFrame(Exception):
    """What came is no message of ours: too long, cut short, not JSON, no object."""


def pack(message: Json, most: int) -> bytes:
    """A message as it goes over the wire."""
    try:
        body = json.dumps(message, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise BadFrame(f"a message that JSON cannot tell: {error}") from error
    if len(body) > most:
        raise BadFrame(f"a message of {len(body):,} bytes; the limit is {most:,}")
    return _HEAD.pack(len(body)) + body


def send(sock: socket.socket, message: Json, most: int, deadline: float) -> None:
    """Sends a message whole, or raises by the deadline (of ``time.monotonic``)."""
    sock.settimeout(_left(deadline))
    sock.sendall(pack(message, most))


def receive(sock: socket.socket, most: int, deadline: float) -> Json:
    """The next message, or an error by the deadline. Nothing is kept beyond ``most`` bytes."""
    (length,) = _HEAD.unpack(_exactly(sock, _HEAD.size, deadline))
    if length > most:
        raise BadFrame(f"a message of {length:,} bytes; the limit is {most:,}")
    return read_object(_exactly(sock, length, deadline))


def read_object(body: bytes) -> Json:
    """A JSON object; whatever else it is, it is named and refused."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadFrame("a message that is not JSON") from error
    if not isinstance(value, dict):
        raise BadFrame("a message that is no object")
    return value


def _exactly(sock: socket.socket, size: int, deadline: float) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        sock.settimeout(_left(deadline))
        part = sock.recv(min(size - len(parts), _AT_ONCE))
        if not part:
            raise BadFrame("the other side hung up in the middle of a message")
        parts += part
    return bytes(parts)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no time left")
    return left
