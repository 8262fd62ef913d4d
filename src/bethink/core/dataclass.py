"""Data classes that cost little to define: start-up time.

`dataclasses.dataclass` compiles six functions for every class, which is a fifth of the time
of a recall as a process, and loads `inspect`. Here what all classes share is shared, and the
first objects of a class are made by plain code. The constructor is compiled once there are
some; for code that reads the fields or the signature, the standard library makes the class.
"""

from __future__ import annotations

import sys
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

    __slots__ = ("compare", "default", "default_factory", "init", "kind", "options", "repr")

    def __init__(self, kind: object, **options: object) -> None:
        self.kind: Any = kind
        self.options: Any = options
        self.default = options.get("default", _UNSET)
        self.default_factory: Any = options.get("default_factory")
        self.init, self.repr, self.compare = (
            options.get(name, True) for name in ("init", "repr", "compare")
        )

    @property
    def is_optional(self) -> bool:
        return self.default is not _UNSET or self.default_factory is not None


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:

    def field(**options: object) -> _Field:
        """Say what `dataclasses.field` says."""
        return _Field(None, **options)

    def dataclass(*, frozen: Literal[True], slots: bool = False) -> Callable[[type], type]:
        """Do what `dataclasses.dataclass` does, for ``frozen=True``, at little cost."""
        assert frozen
        return _make_slotted if slots else _make_plain

    def replace(value: T, /, **changes: object) -> T:
        """Do what `dataclasses.replace` does."""
        for name, one in _require_fields(type(value)).items():
            if not one.init:
                if name in changes:
                    raise ValueError(f"field {name} is declared with init=False")
            elif name not in changes:
                changes[name] = getattr(value, name)
        return type(value)(**changes)


def field_types(kind: type) -> dict[str, object]:
    """Return the names of a data class's fields, with their types as they are written."""
    return {name: one.kind for name, one in _require_fields(kind).items()}


def _require_fields(kind: type) -> Mapping[str, _Field]:
    if not any("__dataclass_fields__" in vars(base) for base in kind.__mro__):
        raise TypeError(f"{kind!r} is no data class")
    return _fields_of(kind)


def _fields_of(kind: type) -> Mapping[str, _Field]:
    """Return the fields of a class, which may be a data class of the standard library."""
    for base in kind.__mro__:
        if "__own_fields__" in vars(base):
            fields: Mapping[str, _Field] = vars(base)["__own_fields__"]
            return fields
        if "__dataclass_fields__" in vars(base):
            from dataclasses import fields as standard_fields  # which the class has loaded

            listed = standard_fields(base)
            return {one.name: _to_field(one, one.type) for one in listed}
    return {}


def _to_field(value: object, kind: object) -> _Field:
    """Return a field with a default, or as one of the two functions `field` describes it."""
    standard: Any = sys.modules.get("dataclasses")  # a Field needs the module that has it
    if isinstance(value, _Field):
        return _Field(kind, **value.options)
    if standard is not None and isinstance(value, standard.Field):
        options = {name: getattr(value, name) for name in ("default", "default_factory")}
        options = {name: one for name, one in options.items() if one is not standard.MISSING}
        flags = {"init": value.init, "repr": value.repr, "compare": bool(value.compare)}
        return _Field(kind, **options, **flags)
    return _Field(kind) if value is _UNSET else _Field(kind, default=value)


def _make_slotted(plain: type) -> type:
    """Return the class anew, with a slot for each field and the methods of a data class."""
    own = _own_fields(plain)
    taken = {name for base in plain.__mro__[1:] for name in getattr(base, "__slots__", ())}
    left_out = {*own, "__dict__", "__weakref__"}
    content = {name: value for name, value in vars(plain).items() if name not in left_out}
    owner: list[type] = []
    content |= _data_content(plain, own, owner)
    content["__slots__"] = tuple(name for name in own if name not in taken)
    made = type(plain)(plain.__name__, plain.__bases__, content)
    made.__qualname__ = plain.__qualname__
    owner.append(made)
    return made


def _make_plain(plain: type) -> type:
    """Give a class the methods of a data class; the defaults stay readable at the class."""
    own = _own_fields(plain)
    for name, value in _data_content(plain, own, [plain]).items():
        if name not in ("__getstate__", "__setstate__"):  # only objects without a dictionary
            setattr(plain, name, value)
    for name, one in own.items():
        if one.default is not _UNSET:
            setattr(plain, name, one.default)
        elif name in vars(plain):
            delattr(plain, name)
    return plain


def _own_fields(plain: type) -> dict[str, _Field]:
    given = vars(plain)
    return {
        name: _to_field(given.get(name, _UNSET), kind)
        for name, kind in plain.__annotations__.items()
        if "ClassVar" not in str(kind)
    }


_PARAMETERS = SimpleNamespace(
    init=True, repr=True, eq=True, order=False, unsafe_hash=False, frozen=True
)


def _data_content(plain: type, own: Mapping[str, _Field], owner: list[type]) -> dict[str, object]:
    """Return what a data class has besides what the class defines itself."""
    fields: dict[str, _Field] = {}
    for base in plain.__mro__[-1:0:-1]:
        fields |= _fields_of(base)
    fields |= own
    _check_defaults(plain, fields)
    methods = _data_methods(fields, owner)
    given: Mapping[str, object] = vars(plain)
    if given.get("__hash__", 0) is None and "__eq__" in given:  # which is why it is None
        given = {name: value for name, value in given.items() if name != "__hash__"}
    content = {name: made for name, made in methods.items() if name not in given}
    return content | {
        "__own_fields__": fields,
        "__signature__": _Signature(owner),
        "__match_args__": tuple(name for name, one in fields.items() if one.init),
        "__dataclass_fields__": _StandardFields(owner),
        "__dataclass_params__": _PARAMETERS,
    }


def _check_defaults(plain: type, fields: Mapping[str, _Field]) -> None:
    """Refuse what `dataclasses` refuses, when the class is made and not with a later object."""
    optional = ""
    for name, one in fields.items():
        if one.init and optional and not one.is_optional:
            raise TypeError(
                f"field {name!r} of {plain.__name__} without a default follows {optional!r}"
            )
        if type(one.default).__hash__ is None:
            raise ValueError(f"the default of field {name!r} of {plain.__name__} can change")
        optional = name if one.init and one.is_optional else optional


@cache
def _standard(kind: type) -> Any:
    """Return the class as `dataclasses` makes it of the same fields."""
    import dataclasses  # start-up time: few programs ask

    fields = [
        (name, one.kind, dataclasses.field(**one.options)) for name, one in _fields_of(kind).items()
    ]
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
    given = [name for name, one in fields.items() if one.init]
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
        known = dict(zip(given, values, strict=True))
        for name, one in fields.items():
            value = known.get(name, _UNSET) if one.init else one.default
            if value is _UNSET and one.default_factory is not None:
                value = one.default_factory()
            object.__setattr__(self, name, value)
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    return construct


def _compile_constructor(owner: type, fields: Mapping[str, _Field]) -> Callable[..., None]:
    """Return what `dataclasses` would compile, for a fifth of the time: it compiles five more."""
    parameters, lines = ["self"], []
    known: dict[str, Any] = {"_set": object.__setattr__, "_unset": _UNSET}
    for name, one in fields.items():
        known[f"_default_{name}"], known[f"_make_{name}"] = one.default, one.default_factory
        value = name if one.init else f"_default_{name}"
        if one.default_factory is not None:
            value = f"_make_{name}() if {value} is _unset else {value}"
        if one.init:
            parameters.append(f"{name}=_default_{name}" if one.is_optional else name)
        lines.append(f" _set(self, {name!r}, {value})")
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
