"""Check the arguments of methods by their annotations: callers may have no type checker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import cache, wraps
from itertools import chain, cycle
from os import PathLike
from types import FunctionType, NoneType
from typing import Any

from bethink.errors import Refused

_TAKES_ARGS = 0x04  # inspect.CO_VARARGS, without that module
_PLAIN = (str, bytes, bool, int, float, list, tuple, dict, set, NoneType)
_OWN = ("Draft", "Filters", "Item", "Plan", "Profile", "Settings")
_KINDS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("str", "Literal", "Level", "CodeChange"), (str, "a text")),
    **dict.fromkeys(("Mapping", "Json"), (Mapping, "a mapping")),
    **dict.fromkeys(("Sequence", "Iterable"), (Iterable, "a list")),
    **dict.fromkeys(("Announce", "Boost", "Clock", "Progress"), (Callable, "a function")),
    "int": (int, "a whole number"), "float": ((int, float), "a number"),
    "bool": (bool, "true or false"), "None": (NoneType, ""), "datetime": ((date, str), "a time"),
    "Path": (PathLike, "a path"), "Texts": ((Iterable, NoneType), "a text or a list of texts"),
}  # fmt: skip


@cache
def _alternatives(annotation: str) -> list[tuple[str, str]]:
    """Return the types of an annotation, each with that of its entries: ``str | list[int]``."""
    return re.findall(r"(\w+)(?:\[((?:[^\[\]]|\[[^\]]*\])*)\])?(?: \| |$)", annotation)


def _fits(value: object, annotation: str) -> bool:
    return any(_is_a(value, name, inner) for name, inner in _alternatives(annotation))


def _is_a(value: object, name: str, inner: str) -> bool:
    if name not in _KINDS:  # a type of this package, or a protocol, which a tuple may have, too
        is_own = any(base.__name__ == name for base in type(value).__mro__)
        return is_own or (name not in _OWN and type(value) not in _PLAIN)
    if not isinstance(value, _KINDS[name][0]) or (isinstance(value, bool) and name != "bool"):
        return False
    if name not in ("Sequence", "Iterable"):
        return True
    if isinstance(value, str | bytes | Mapping):
        return False
    if inner == "NewMemory" or not isinstance(value, list | tuple):
        return True  # each is checked when it is stored; others may be read only once
    return all(_fits(entry, inner) for entry in value)


def check_argument(name: str, value: object, annotation: str) -> None:
    """Refuse a value that is not of the annotated type, in words that name the argument."""
    if not _fits(value, annotation):
        kinds = (
            (_KINDS.get(kind, (0, f"a {kind}"))[1], of) for kind, of in _alternatives(annotation)
        )
        words = [f"{word} of texts" if inner == "str" else word for word, inner in kinds if word]
        raise Refused(f"{name} is {value!r:.60}, but must be {' or '.join(words)}")


def _plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


def checked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method behind a check of its arguments; keywords of a ``**`` are its own."""
    code = method.__code__
    last = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[1 : code.co_argcount]
    rest = code.co_varnames[last : last + 1] if code.co_flags & _TAKES_ARGS else ()
    named = (*code.co_varnames[:last], *rest)
    wanted = {name: kind for name, kind in method.__annotations__.items() if name in named}

    @wraps(method)
    def run(self: object, /, *args: object, **given: object) -> object:
        args = tuple(map(_plain, args))
        given = {name: _plain(value) for name, value in given.items()}
        placed = zip(chain(names, cycle(rest)), args, strict=False)  # Python refuses too many
        for name, value in chain(placed, given.items()):
            if name in wanted:
                check_argument(name, value, wanted[name])
        return method(self, *args, **given)

    return run


def check_methods(owner: type) -> None:
    """Put the check before every public method that a class defines."""
    for name, value in list(vars(owner).items()):
        if isinstance(value, FunctionType) and name[0] != "_":
            setattr(owner, name, checked(value))
        elif isinstance(value, classmethod) and name[0] != "_":
            setattr(owner, name, classmethod(checked(value.__func__)))
