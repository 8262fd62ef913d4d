"""Named tuples that cost little to define: start-up time.

`typing.NamedTuple` compiles a constructor for every class, which took a seventh of the time
of a command. Here it is compiled once there are some objects; what all classes share, they
inherit. To a type checker it is `typing.NamedTuple` itself.
"""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]  # as named tuples there
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

__all__ = ["COMPILED_FROM", "NamedTuple", "bind"]

COMPILED_FROM = 16  # objects: a command makes fewer of most classes


class _Signature:
    """The parameters of the constructor, which may not have been compiled yet."""

    def __get__(self, _: object, owner: Any) -> object:
        from inspect import signature  # start-up time: only documentation asks

        made = signature(_compile_constructor(owner))
        return made.replace(parameters=list(made.parameters.values())[1:])


class _NamedTuple(tuple[object, ...]):
    """What all named tuples share."""

    __slots__ = ()
    __signature__ = _Signature()
    if TYPE_CHECKING:
        _fields: tuple[str, ...]
        _field_defaults: Mapping[str, object]

    @classmethod
    def _make(cls, values: Iterable[object]) -> Self:
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, **changes: object) -> Self:
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return made

    __replace__ = _replace

    def _asdict(self) -> dict[str, object]:
        return dict(zip(self._fields, self, strict=True))

    def __getnewargs__(self) -> tuple[object, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
        return f"{self.__class__.__name__}({shown})"


class _Maker(type):
    """Makes the class of a named tuple out of a class statement."""

    def __new__(cls, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, content)  # NamedTuple itself
        annotate = content.get("__annotate_func__", lambda _: ())  # Python 3.14 asks for them
        fields = tuple(content.get("__annotations__") or annotate(1))
        defaults = {field: content[field] for field in fields if field in content}
        if tuple(defaults) != fields[len(fields) - len(defaults) :]:
            raise TypeError(f"a field of {name} without a default follows one with a default")
        content |= {field: _tuplegetter(at, "") for at, field in enumerate(fields)}
        content |= {"__slots__": (), "__match_args__": fields}
        content |= {"_fields": fields, "_field_defaults": defaults}
        count = 0

        def construct(cls: type, /, *args: object, **kwargs: object) -> object:
            nonlocal count
            count += 1
            values = bind(fields, defaults, args, kwargs) if count < COMPILED_FROM else None
            if values is not None:
                return tuple.__new__(cls, values)
            made.__new__ = staticmethod(_compile_constructor(made))
            return made.__new__(cls, *args, **kwargs)

        content["__new__"] = construct
        made: Any = type(name, (_NamedTuple, *bases[1:]), content)
        return made


def bind(
    fields: Sequence[str],
    defaults: Mapping[str, object],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> tuple[object, ...] | None:
    """Return the values of all fields; None where the arguments do not fit."""
    left = fields[len(args) :]
    if len(args) > len(fields) or not kwargs.keys() <= set(left):
        return None
    values = {**defaults, **kwargs}
    try:
        return (*args, *[values[field] for field in left])
    except KeyError:
        return None


def _compile_constructor(owner: Any) -> Any:
    parameters = "".join(f", {field}" for field in owner._fields)
    values = "".join(f"{field}, " for field in owner._fields)
    source = f"lambda _cls{parameters}: _new(_cls, ({values}))"
    # Of names that are in our own source.
    made: Any = eval(source, {"_new": tuple.__new__, "__name__": owner.__module__})  # noqa: S307
    made.__name__, made.__qualname__ = "__new__", f"{owner.__qualname__}.__new__"
    made.__defaults__ = tuple(owner._field_defaults.values())
    made.__annotations__ = owner.__annotations__
    return made


if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class NamedTuple(metaclass=_Maker):
        """The base of a class statement that lists fields with their types and defaults."""
