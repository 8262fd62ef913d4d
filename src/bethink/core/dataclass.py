"""Data classes that cost little to define: start-up time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from bethink.core.named_tuple import COMPILED_FROM, bind

__all__ = ["dataclass", "field", "field_types", "replace"]

T = TypeVar("T")


class _Unset:
    """Where there is no default; `help` shows it where a function makes one."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET: Any = _Unset()


class _Field:
    """A field of a data class: what `dataclasses.Field` knows of it, in little."""

    __slots__ = ("compare", "default", "default_factory", "init", "kind", "repr")

    def __init__(self, default: Any, factory: Any, flags: tuple[bool, bool, bool]) -> None:
        self.default, self.default_factory = default, factory
        self.init, self.repr, self.compare = flags
        self.kind: Any = None

    @property
    def is_optional(self) -> bool:
        return self.default is not _UNSET or self.default_factory is not _UNSET

    def standard(self, name: str) -> Any:
        """Return it as `dataclasses` has it."""
        import dataclasses  # start-up time: few programs ask

        made: Any = dataclasses.field(init=self.init, repr=self.repr, compare=self.compare)
        if self.default is not _UNSET:
            made.default = self.default
        if self.default_factory is not _UNSET:
            made.default_factory = self.default_factory
        made.name, made.type, made.kw_only = name, self.kind, False
        made._field_type = dataclasses._FIELD  # type: ignore[attr-defined] # noqa: SLF001
        return made


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:

    def field(
        *,
        default: Any = _UNSET,
        default_factory: Any = _UNSET,
        init: bool = True,
        repr: bool = True,  # noqa: A002 - as there
        compare: bool = True,
    ) -> _Field:
        """Say what `dataclasses.field` says."""
        return _Field(default, default_factory, (init, repr, compare))

    def dataclass(*, frozen: Literal[True], slots: bool = False) -> Callable[[type], type]:
        """Do what `dataclasses.dataclass` does, for ``frozen=True``, at little cost.

        That compiles six functions for every class, which is a tenth of the time that a
        command takes to start, and loads `inspect`. Here the constructor is compiled once
        there are some objects, and nothing else is.
        """
        assert frozen
        return _make_slotted if slots else _make_plain

    def replace(value: T, /, **changes: Any) -> T:
        """Do what `dataclasses.replace` does."""
        for name, one in _all_fields(type(value)).items():
            if not one.init:
                if name in changes:
                    raise ValueError(f"field {name} is declared with init=False")
            elif name not in changes:
                changes[name] = getattr(value, name)
        return type(value)(**changes)


_PARAMETERS = SimpleNamespace(
    init=True, repr=True, eq=True, order=False, unsafe_hash=False, frozen=True
)


class _StandardFields:
    """The fields of a data class for the functions of `dataclasses`, made when one asks."""

    def __init__(self, fields: Mapping[str, _Field]) -> None:
        self.fields = fields
        self._made: dict[str, Any] = {}

    def __get__(self, _: object, __: object) -> dict[str, Any]:
        if len(self._made) < len(self.fields):
            self._made = {name: one.standard(name) for name, one in self.fields.items()}
        return self._made


class _Signature:
    """The parameters of the constructor, which may not have been compiled yet."""

    def __init__(self, fields: Mapping[str, _Field], owner: list[type]) -> None:
        self._fields, self._owner = fields, owner

    def __get__(self, value: object, kind: Any) -> Any:
        # An object is called, not constructed; a class below may have its own constructor.
        if value is not None or kind.__init__ is not vars(self._owner[0]).get("__init__"):
            raise AttributeError("__signature__")
        from inspect import signature  # start-up time: only documentation asks

        constructor: Any = _compile_constructor(self._fields, has_post_init=False)
        kinds = {name: one.kind for name, one in self._fields.items() if one.init}
        constructor.__annotations__ = {**kinds, "return": None}
        made = signature(constructor)
        return made.replace(parameters=list(made.parameters.values())[1:])


def _make_slotted(plain: type) -> type:
    """Return the class anew, with a slot for each field and the methods of a data class."""
    own, owner = _own_fields(plain), list[type]()
    taken = {name for base in plain.__mro__[1:] for name in getattr(base, "__slots__", ())}
    left_out = {*own, "__dict__", "__weakref__"}
    content = {name: value for name, value in vars(plain).items() if name not in left_out}
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


def _data_content(plain: type, own: Mapping[str, _Field], owner: list[type]) -> dict[str, Any]:
    """Return what a data class has besides what the class defines itself."""
    fields: dict[str, _Field] = {}
    for base in plain.__mro__[-1:0:-1]:
        fields |= _fields_of(base)
    fields |= own
    _check_defaults(plain, fields)
    methods = _data_methods(fields, owner)
    given: Mapping[str, Any] = vars(plain)
    if given.get("__hash__", 0) is None and "__eq__" in given:  # which is why it is None
        given = {name: value for name, value in given.items() if name != "__hash__"}
    content = {name: made for name, made in methods.items() if name not in given}
    return content | {
        "__signature__": _Signature(fields, owner),
        "__match_args__": tuple(name for name, one in fields.items() if one.init),
        "__dataclass_fields__": _StandardFields(fields),
        "__dataclass_params__": _PARAMETERS,
    }


def _fields_of(base: type) -> Mapping[str, _Field]:
    """Return the fields of a class above, which may be a data class of the standard library."""
    known = vars(base).get("__dataclass_fields__", {})
    if isinstance(known, _StandardFields):
        return known.fields
    if not known:
        return {}
    from dataclasses import fields  # which the class has loaded; without variables of the class

    return {one.name: _to_field(one, one.type) for one in fields(base)}


def _all_fields(kind: type) -> Mapping[str, _Field]:
    for base in kind.__mro__:
        if "__dataclass_fields__" in vars(base):
            return _fields_of(base)
    raise TypeError(f"{kind!r} is no data class")


def field_types(kind: type) -> dict[str, Any]:
    """Return the names of a data class's fields, with their types as they are written."""
    return {name: one.kind for name, one in _all_fields(kind).items()}


def _own_fields(plain: type) -> dict[str, _Field]:
    given = vars(plain)
    return {
        name: _to_field(given.get(name, _UNSET), kind)
        for name, kind in plain.__annotations__.items()
        if "ClassVar" not in str(kind)
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


def _to_field(value: Any, kind: Any) -> _Field:
    """Return a field with a default, or as one of the two functions `field` describes it."""
    standard: Any = sys.modules.get("dataclasses")  # a Field needs the module that has it
    if standard is not None and isinstance(value, standard.Field):
        default, factory = (
            _UNSET if one is standard.MISSING else one
            for one in (value.default, value.default_factory)
        )
        made = _Field(default, factory, (value.init, value.repr, bool(value.compare)))
    else:
        made = value if isinstance(value, _Field) else _Field(value, _UNSET, (True, True, True))
    made.kind = kind
    return made


def _data_methods(fields: Mapping[str, _Field], owner: list[type]) -> dict[str, Any]:
    """Return what constructs, compares, shows, protects and copies objects of the owner."""
    compared = _getter([name for name, one in fields.items() if one.compare])
    everything = _getter(list(fields))
    shown = [name for name, one in fields.items() if one.repr]

    def equals(self: Any, other: object) -> Any:
        same = other.__class__ is self.__class__
        return compared(self) == compared(other) if same else NotImplemented

    def show(self: Any) -> str:
        pairs = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({pairs})"

    def set_state(self: Any, state: Sequence[Any]) -> None:
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
    """Return a constructor that is replaced by a compiled one once there are some objects."""
    given = [name for name, one in fields.items() if one.init]
    defaults = {name: one.default for name, one in fields.items() if one.is_optional}
    count = 0

    def construct(self: Any, /, *args: Any, **kwargs: Any) -> None:
        nonlocal count
        count += 1
        values = bind(given, defaults, args, kwargs) if count < COMPILED_FROM else None
        has_post_init = hasattr(owner[0], "__post_init__")
        if values is None:
            compiled: Any = _compile_constructor(fields, has_post_init)
            compiled.__qualname__ = f"{owner[0].__qualname__}.__init__"  # which mistakes name
            setattr(owner[0], "__init__", compiled)  # noqa: B010 - mypy allows no other way
            compiled(self, *args, **kwargs)
            return
        known = dict(zip(given, values, strict=True))
        for name, one in fields.items():
            value = known.get(name, _UNSET) if one.init else one.default
            if value is _UNSET and one.default_factory is not _UNSET:
                value = one.default_factory()
            object.__setattr__(self, name, value)
        if has_post_init:
            self.__post_init__()

    return construct


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
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


def _compile_constructor(fields: Mapping[str, _Field], has_post_init: bool) -> Callable[..., None]:
    parameters, lines = ["self"], []
    known: dict[str, Any] = {"_set": object.__setattr__, "_unset": _UNSET}
    for name, one in fields.items():
        value = name
        if one.default_factory is not _UNSET:
            known[f"_make_{name}"] = one.default_factory
            made = f"_make_{name}()"
            value = f"{made} if {name} is _unset else {name}" if one.init else made
        elif one.default is not _UNSET:
            known[f"_default_{name}"] = one.default
            value = name if one.init else f"_default_{name}"
        if one.init:
            default = "=_unset" if one.default is _UNSET else f"=_default_{name}"
            parameters.append(name + default * one.is_optional)
        lines.append(f" _set(self, {name!r}, {value})")
    if has_post_init:
        lines.append(" self.__post_init__()")
    source = f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"])
    exec(source, known)  # noqa: S102 - of names that are in our own source
    constructor: Callable[..., None] = known["__init__"]
    return constructor
