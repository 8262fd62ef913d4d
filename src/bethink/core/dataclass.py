"""Data classes that cost little to define: start-up time.

`dataclasses.dataclass` compiles six functions for every class, which is a fifth of the time
of a recall as a process, and loads `inspect`. Here what all classes share is shared, and the
first objects of a class are made by plain code. The constructor is compiled once there are
some; for code that reads the fields or the signature, the standard library makes the class.
A class is frozen, has slots, and is not below another data class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from bethink.core.named_tuple import COMPILED_FROM, bind

__all__ = ["dataclass", "field", "field_types", "replace"]

T = TypeVar("T")
_UNSET = object()


class _Field:
    """A field: its type as it is written, and the arguments of `dataclasses.field`."""

    __slots__ = ("compare", "default", "default_factory", "is_optional", "kind", "options", "repr")

    def __init__(self, **options: Any) -> None:
        self.kind: Any = None
        self.options = options
        self.default = options.get("default", _UNSET)
        self.default_factory: Any = options.get("default_factory")
        self.is_optional = self.default is not _UNSET or self.default_factory is not None
        self.repr, self.compare = options.get("repr", True), options.get("compare", True)


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    field = _Field  # what it is given, `dataclasses.field` understands

    def dataclass(*, frozen: Literal[True], slots: Literal[True]) -> Callable[[type], type]:
        """Do what `dataclasses.dataclass` does, at little cost."""
        assert frozen
        assert slots
        return _make

    def replace(value: T, /, **changes: object) -> T:
        """Do what `dataclasses.replace` does."""
        fields = vars(type(value)).get("__own_fields__")
        if fields is None:
            from dataclasses import replace as standard_replace  # which the class has loaded

            return standard_replace(value, **changes)
        kept = {name: getattr(value, name) for name in fields if name not in changes}
        return type(value)(**kept, **changes)


def field_types(kind: type) -> dict[str, object]:
    """Return the names of a data class's fields, with their types as they are written."""
    fields = vars(kind).get("__own_fields__")
    if fields is None:
        from dataclasses import fields as standard_fields  # of a plug-in's class, which loaded it

        return {one.name: one.type for one in standard_fields(kind)}
    return {name: one.kind for name, one in fields.items()}


def _make(plain: type) -> type:
    """Return the class anew, with a slot for each field and the methods of a data class."""
    assert not hasattr(plain, "__own_fields__"), f"{plain} is below another data class"
    fields = {
        name: _to_field(vars(plain).get(name, _UNSET), kind)
        for name, kind in plain.__annotations__.items()
        if "ClassVar" not in str(kind)
    }
    given = {
        name: value
        for name, value in vars(plain).items()
        if name not in fields and name not in ("__dict__", "__weakref__")
    }
    if given.get("__hash__", 0) is None:  # since the class defines how to compare
        del given["__hash__"]
    owner: list[type] = []
    content = _data_methods(fields, owner) | given | {
        "__own_fields__": fields,
        "__slots__": tuple(fields),
        "__signature__": _Signature(owner),
        "__match_args__": tuple(fields),
        "__dataclass_fields__": _StandardFields(owner),
        "__dataclass_params__": _PARAMETERS,
    }  # fmt: skip
    made = type(plain)(plain.__name__, plain.__bases__, content)
    made.__qualname__ = plain.__qualname__
    owner.append(made)
    return made


def _to_field(value: Any, kind: object) -> _Field:
    """Return the field of an annotation with this default, or described by `field`."""
    made = value if isinstance(value, _Field) else None
    made = made or (_Field() if value is _UNSET else _Field(default=value))
    made.kind = kind
    return made


_PARAMETERS = SimpleNamespace(
    init=True, repr=True, eq=True, order=False, unsafe_hash=False, frozen=True
)


@cache
def _standard(kind: type) -> Any:
    """Return the class as `dataclasses` makes it of the same fields."""
    import dataclasses  # start-up time: few programs ask

    own: Mapping[str, _Field] = vars(kind)["__own_fields__"]
    fields = [(name, one.kind, dataclasses.field(**one.options)) for name, one in own.items()]
    content = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    made: Any = dataclasses.make_dataclass(kind.__name__, fields, namespace=content, frozen=True)
    return made


class _StandardFields:
    """The fields of a data class for the functions of `dataclasses`, made when one asks."""

    def __init__(self, owner: list[type]) -> None:
        self._owner = owner

    def __get__(self, _: object, __: object) -> Mapping[str, object]:
        fields: Mapping[str, object] = _standard(self._owner[0]).__dataclass_fields__
        return fields


class _Signature:
    """The parameters of the constructor, which may not have been compiled yet."""

    def __init__(self, owner: list[type]) -> None:
        self._owner = owner

    def __get__(self, value: object, kind: Any) -> object:
        # An object is called, not constructed; a class below may have its own constructor.
        if value is not None or kind.__init__ is not vars(self._owner[0]).get("__init__"):
            raise AttributeError("__signature__")
        from inspect import signature  # start-up time: only documentation asks

        return signature(_standard(self._owner[0]))


def _data_methods(fields: Mapping[str, _Field], owner: list[type]) -> dict[str, object]:
    """Return what constructs, compares, shows, protects and copies objects of the owner."""
    compared = _getter([name for name, one in fields.items() if one.compare])
    everything = _getter(list(fields))
    shown = [name for name, one in fields.items() if one.repr]

    def equals(self: object, other: object) -> bool:
        same = other.__class__ is self.__class__
        return compared(self) == compared(other) if same else NotImplemented

    def show(self: object) -> str:
        pairs = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({pairs})"

    def set_state(self: object, state: Sequence[object]) -> None:
        for name, value in zip(fields, state, strict=True):
            object.__setattr__(self, name, value)

    return {
        "__init__": _first_constructor(fields, owner),
        "__eq__": equals,
        "__hash__": lambda self: hash(compared(self)),
        "__repr__": show,
        "__replace__": lambda self, /, **changes: replace(self, **changes),  # `copy.replace`
        "__getstate__": lambda self: list(everything(self)),
        "__setstate__": set_state,
        "__setattr__": _refuse_change,
        "__delattr__": _refuse_deletion,
    }


def _first_constructor(fields: Mapping[str, _Field], owner: list[type]) -> Callable[..., None]:
    """Return a constructor that the compiled one replaces once there are some objects."""
    given = list(fields)
    defaults = {name: one.default for name, one in fields.items() if one.is_optional}
    count = 0

    def construct(self: Any, /, *args: object, **kwargs: object) -> None:
        nonlocal count
        count += 1
        values = bind(given, defaults, args, kwargs) if count < COMPILED_FROM else None
        if values is None:  # enough objects, or arguments that do not fit
            compiled = _compile_constructor(owner[0], fields)
            setattr(owner[0], "__init__", compiled)  # noqa: B010 - mypy allows no other way
            compiled(self, *args, **kwargs)
            return
        for name, value in zip(given, values, strict=True):
            made = fields[name].default_factory() if value is _UNSET else value
            object.__setattr__(self, name, made)
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    return construct


def _compile_constructor(owner: type, fields: Mapping[str, _Field]) -> Callable[..., None]:
    """Return what `dataclasses` would compile, for a fifth of the time: it compiles five more."""
    parameters, lines = ["self"], []
    known: dict[str, Any] = {"_set": object.__setattr__, "_unset": _UNSET}
    for name, one in fields.items():
        known[f"_default_{name}"], known[f"_make_{name}"] = one.default, one.default_factory
        made = f"_make_{name}() if {name} is _unset else {name}"
        parameters.append(f"{name}=_default_{name}" if one.is_optional else name)
        lines.append(f" _set(self, {name!r}, {made if one.default_factory else name})")
    if hasattr(owner, "__post_init__"):
        lines.append(" self.__post_init__()")
    source = f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"])
    exec(source, known)  # noqa: S102 - of names that are in our own source
    compiled: Callable[..., None] = known["__init__"]
    compiled.__qualname__ = f"{owner.__qualname__}.__init__"  # which mistakes name
    return compiled


def _getter(names: Sequence[str]) -> Callable[[object], tuple[object, ...]]:
    """Return what reads these attributes of an object, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _refuse_change(_self: object, name: str, *_: object) -> NoReturn:
    from dataclasses import FrozenInstanceError  # start-up time: only for mistakes

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError  # start-up time: see above

    raise FrozenInstanceError(f"cannot delete field {name!r}")
