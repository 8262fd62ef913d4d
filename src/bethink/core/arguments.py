"""Check the arguments of methods by their annotations: callers may have no type checker."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cache, wraps
from itertools import chain, cycle
from os import PathLike
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from bethink.errors import Refused

_TAKES_ARGS = 0x04  # inspect.CO_VARARGS, without that module
_PLAIN = (str, bytes, bool, int, float, list, tuple, dict, set, NoneType)
# What a type takes, and its name in a message.
_KINDS: dict[Any, tuple[Any, str]] = {
    **dict.fromkeys((str, Literal), (str, "a text")),
    **dict.fromkeys((Mapping, dict), (Mapping, "a mapping")),
    **dict.fromkeys((Sequence, Iterable), (Iterable, "a list")),
    Callable: (Callable, "a function"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    bool: (bool, "true or false"),
    NoneType: (NoneType, ""),
    datetime: ((date, str), "a time"),
    Path: (PathLike, "a path"),
}


class _Names(dict[str, Any]):
    """The names that annotations use; one that only type checkers import stands for a protocol."""

    def __missing__(self, name: str) -> Any:
        return type(name, (), {"_is_protocol": True})


@cache
def _read(method: FunctionType, name: str) -> object:
    """Return the type that the annotation of an argument names, or is."""
    annotation = method.__annotations__[name]
    if not isinstance(annotation, str):
        return annotation  # of a caller's subclass
    names = _Names(vars(builtins) | getattr(method, "__wrapped__", method).__globals__)
    names |= {"Any": object, "NewMemory": object}  # each of these is checked when it is stored
    try:
        made: object = eval(annotation, {}, names)  # noqa: S307 - of our own source
    except (AttributeError, TypeError):
        return object  # a caller's subclass uses what only type checkers import
    return made


def _alternatives(kind: object) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _fits(value: object, kind: object) -> bool:
    return any(_is_a(value, one) for one in _alternatives(kind))


def _is_a(value: object, kind: Any) -> bool:
    origin = get_origin(kind) or kind
    if origin is Annotated:
        return _fits(value, kind.__origin__)
    if origin not in _KINDS:
        # What a protocol wants is seen when it is used; a tuple may have it, too.
        is_protocol = getattr(origin, "_is_protocol", False)
        return type(value) not in _PLAIN if is_protocol else _may_be(value, origin)
    if not isinstance(value, _KINDS[origin][0]) or (isinstance(value, bool) and origin is not bool):
        return False
    if origin not in (Sequence, Iterable):
        return True
    if isinstance(value, str | bytes | Mapping):
        return False
    # Others than lists and tuples may be read only once.
    entries = value if get_args(kind) and isinstance(value, list | tuple) else ()
    return all(_fits(one, *get_args(kind)) for one in entries)


def _may_be(value: object, kind: Any) -> bool:
    try:
        return isinstance(value, kind)
    except TypeError:
        return True  # only a type checker can tell, as of a TypeVar


def _name(kind: Any) -> str:
    """Return how a message names a type; empty for None."""
    known = _KINDS.get(get_origin(kind) or kind)
    if known is None:
        return f"a {kind.__name__}"
    return f"{known[1]} of texts" if get_args(kind) == (str,) else known[1]


def check_argument(method: Any, name: str, value: object) -> None:
    """Refuse a value that is not of the annotated type, in words that name the argument."""
    kind = _read(method, name)
    if not _fits(value, kind):
        words = filter(None, map(_name, _alternatives(kind)))
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
    wanted = {*code.co_varnames[:last], *rest} & method.__annotations__.keys()

    @wraps(method)
    def run(self: object, /, *args: object, **given: object) -> object:
        args = tuple(map(_plain, args))
        given = {name: _plain(value) for name, value in given.items()}
        placed = zip(chain(names, cycle(rest)), args, strict=False)  # Python refuses too many
        for name, value in chain(placed, given.items()):
            if name in wanted:
                check_argument(method, name, value)
        return method(self, *args, **given)

    return run


def check_methods(owner: type) -> None:
    """Put the check before every public method that a class defines."""
    for name, value in list(vars(owner).items()):
        if isinstance(value, FunctionType) and name[0] != "_":
            setattr(owner, name, checked(value))
        elif isinstance(value, classmethod) and name[0] != "_":
            setattr(owner, name, classmethod(checked(value.__func__)))
