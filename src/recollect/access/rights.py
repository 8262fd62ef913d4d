"""Rights in their order, and whoever has one."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from enum import IntEnum
from typing import Any, NamedTuple

_KEY = "recollect.principal"


class Right(IntEnum):
    """What somebody may do; each includes those before it.

    No token can give LOCAL: it is for who sits at this machine and runs our own commands.
    """

    ANYONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3
    LOCAL = 4

    @property
    def word(self) -> str:
        """As it is written in options, files and answers."""
        return self.name.lower()


GRANTED = (Right.READ, Right.WRITE, Right.ADMIN)  # what a token can give


class Principal(NamedTuple):
    """Whoever asks. ``key`` tells two tokens of one name apart, after each other."""

    name: str
    right: Right
    key: str = ""


OWNER = Principal("owner", Right.LOCAL)  # who started this process and speaks to it directly
LOOPBACK = Principal("loopback", Right.WRITE)  # a program of this machine without a token
NOBODY = Principal("nobody", Right.ANYONE)


def keep_principal(scope: MutableMapping[str, Any], principal: Principal) -> None:
    """Notes with a request who it is that asks."""
    scope[_KEY] = principal


def principal_of(scope: Mapping[str, Any]) -> Principal:
    """Who asks; nobody, where no guard has let them in."""
    found = scope.get(_KEY)
    return found if isinstance(found, Principal) else NOBODY
