"""Who is speaking: the version and the installation of each side."""

from __future__ import annotations

from typing import NamedTuple

from recollect.version import __version__
from recollect.worker.place import installation

PROTOCOL = 1


class Hello(NamedTuple):
    """What a worker and its caller must agree on before one can answer for the other."""

    protocol: int
    version: str
    installation: str


def own_hello() -> Hello:
    """Our own."""
    return Hello(PROTOCOL, __version__, installation())


def read_hello(value: object) -> Hello | None:
    """Somebody's, if it is one at all."""
    if not isinstance(value, list) or len(value) != len(Hello._fields):
        return None
    protocol, *texts = value
    if type(protocol) is not int or not all(isinstance(text, str) for text in texts):
        return None
    return Hello(protocol, *texts)
