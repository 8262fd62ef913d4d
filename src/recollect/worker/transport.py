"""The way to the worker: a socket only its user can reach, or a port and a secret."""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import NamedTuple

from recollect.worker import loopback
from recollect.worker.place import Place, require_private

_BACKLOG = 64
_CREDENTIALS = struct.Struct("3i")  # process, user, group


class Listener(NamedTuple):
    """Where a worker listens; ``secret`` is what a caller over a port must know."""

    sock: socket.socket
    secret: bytes = b""


def listen(place: Place) -> Listener:
    """Opens the door. Only the holder of the place's lock may: what is left of a worker
    that was killed is swept away."""
    place.door.unlink(missing_ok=True)
    if not place.unix:
        return Listener(*loopback.listen(place.door))
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            sock.bind(str(place.door))
        finally:
            os.umask(before)
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return Listener(sock)


def connect(place: Place, deadline: float) -> socket.socket:
    """A connection to the worker, or OSError where there is none to trust."""
    require_private(place.folder)
    if not place.unix:
        return loopback.connect(place.door, deadline)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(max(deadline - time.monotonic(), 0.001))
        sock.connect(str(place.door))
        require_same_user(sock)
    except OSError:
        sock.close()
        raise
    return sock


def admit(sock: socket.socket, listener: Listener, deadline: float) -> None:
    """Raises OSError where whoever called may not be answered."""
    if listener.secret:
        loopback.prove(sock, listener.secret, deadline)
    else:
        require_same_user(sock)


def require_same_user(sock: socket.socket) -> None:
    """Raises PermissionError where the other end is somebody else's, as the kernel knows
    it. Where the kernel is not asked, the folder is closed to others."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return
    raw = sock.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(raw)
    if user != os.geteuid():
        raise PermissionError(f"the other end belongs to user {user}")
