"""Registries: parts by name, imported on first use, and the plug-ins that add to them.

A profile uses a few of many parts, and a recall from the command line imports no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar, cast

from bethink.errors import BadPlugin, Refused

if TYPE_CHECKING:  # start-up time: importlib.metadata costs more than a recall
    from importlib.metadata import EntryPoint

P = TypeVar("P")
T = TypeVar("T")


# The package whose PARTS, by group, come with Bethink without belonging to its core.
BUNDLED = "bethink.systems"


class Registry(Mapping[str, T], Generic[T]):
    """Parts of one kind by name: built-in ones and those of installed plug-ins.

    ``parts`` maps a name to a part or to the "package.module:Attribute" that holds it; the
    package `BUNDLED` adds to them. ``group`` is the entry-point group of plug-ins. Both are
    read only for a name that is not among ``parts``, and when all names are listed. A plug-in
    cannot replace a built-in part. ``adapt`` turns what a plug-in offers into a part.
    """

    def __init__(
        self,
        kind: str,
        parts: Mapping[str, str | T],
        *,
        group: str = "",
        adapt: Callable[[Any], T] | None = None,
    ) -> None:
        self.kind = kind
        self.group = group
        self._core = dict(parts)
        self._adapt = adapt
        self._loaded: dict[str, T] = {}

    @cached_property
    def _parts(self) -> dict[str, str | T]:
        bundled: Mapping[str, Mapping[str, str]] = import_object(f"{BUNDLED}:PARTS")
        return {**self._core, **bundled.get(self.group, {})}

    @property
    def builtin(self) -> tuple[str, ...]:
        """The names of the built-in parts."""
        return tuple(self._parts)

    def is_builtin(self, name: str) -> bool:
        """Whether a built-in part has this name."""
        return name in self._core or name in self._parts

    @property
    def installed(self) -> tuple[str, ...]:
        """The names that plug-ins add."""
        return tuple(name for name in self._plugins() if name not in self._parts)

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self.is_builtin(name) or name in self._plugins())

    def __iter__(self) -> Iterator[str]:
        yield from self._parts
        yield from self.installed

    def __len__(self) -> int:
        return len(self._parts) + len(self.installed)

    def name_of(self, part: object) -> str | None:
        """The name of a part, found without importing the others; None where it has none."""
        module = getattr(part, "__module__", "")
        location = f"{module}:{getattr(part, '__qualname__', '')}"
        known = (
            name
            for name, known_part in self._parts.items()
            if known_part is part or known_part == location
        )
        found = next(known, None)
        if found is not None or not self.group or module.partition(".")[0] == "bethink":
            return found
        return next(
            (name for name, known_part in self._plugins().items() if known_part.value == location),
            None,
        )

    def shadowed(self) -> list[str]:
        """One sentence for every plug-in that offers the name of a built-in part."""
        return [
            f"the plug-in {_distribution(entry)} provides a {self.kind} {name!r}, "
            f"which is built in; the built-in one is used"
            for name, entry in self._plugins().items()
            if name in self._parts
        ]

    def _plugins(self) -> dict[str, EntryPoint]:
        return plugins(self.group) if self.group else {}

    def _load(self, name: str) -> T:
        if self.is_builtin(name):
            part = self._core[name] if name in self._core else self._parts[name]
            return cast("T", import_object(part)) if isinstance(part, str) else part
        entry = self._plugins()[name]
        try:
            loaded = entry.load()
            part = f"the {self.kind} {name!r} of the plug-in {_distribution(entry)}"
            _outside[entry.module, entry.attr] = part
            return self._adapt(loaded) if self._adapt else cast("T", loaded)
        except Exception as error:
            raise BadPlugin(
                f"the {self.kind} {name!r} of the plug-in {_distribution(entry)} "
                f"cannot be loaded: {type(error).__name__}: {error}",
                remedy=f"update or uninstall {_distribution(entry)}",
            ) from error


# Parts that are not ours: their modules and names, with what to call them.
_outside: dict[tuple[str, str], str] = {}


def name_failure(error: BaseException) -> str:
    """Say whose error this is: of a part that a plug-in or a profile brought, or a bug of ours."""
    packages = {module.partition(".")[0]: part for (module, _), part in _outside.items()}
    at_fault = ""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        module = str(frame.f_globals.get("__name__", ""))
        owner = type(frame.f_locals.get("self"))
        part = _outside.get((owner.__module__, owner.__qualname__)) or _outside.get(
            (module, frame.f_code.co_qualname)
        )
        if part:
            return f"an error in {part}"
        at_fault = at_fault or packages.get(module.partition(".")[0], "")
        trace = trace.tb_next
    return f"an error in what came with {at_fault}" if at_fault else "a bug in Bethink"


_own_classes: ContextVar[bool] = ContextVar("bethink_own_classes", default=True)


@contextmanager
def without_own_classes() -> Iterator[None]:
    """Import no class that a profile of the user names, for a process that runs for others.

    It may find another class by that name, or have loaded one that was changed since.
    """
    token = _own_classes.set(False)
    try:
        yield
    finally:
        _own_classes.reset(token)


def import_own_class(location: str) -> Any:
    """Import a class that a profile of the user names."""
    module, _, attribute = location.partition(":")
    if not module.startswith("bethink."):
        if not _own_classes.get():
            raise Refused("the process that asks must import it")
        _outside[module, attribute] = f"{location}, which the profile names"
    return import_object(location)


def import_object(location: str) -> Any:
    """Import the object at "package.module:Attribute"."""
    module, _, attribute = location.partition(":")
    return getattr(import_module(module), attribute)


def pydantic_schema(location: str) -> Callable[[type[T]], type[T]]:
    """Let pydantic, and FastAPI by it, write values as the function at this location does."""

    def schema(cls: type, *_: object) -> Any:
        from pydantic_core import core_schema  # the caller has it

        shape = core_schema.plain_serializer_function_ser_schema(
            import_object(location), return_schema=core_schema.dict_schema()
        )
        return core_schema.is_instance_schema(cls, serialization=shape)

    def decorate(cls: type[T]) -> type[T]:
        cls.__get_pydantic_core_schema__ = classmethod(schema)  # type: ignore[attr-defined]
        return cls

    return decorate


def location_of(part: object) -> str | None:
    """The "package.module:Attribute" of a class; None where it cannot be imported by it."""
    location = f"{getattr(part, '__module__', '')}:{getattr(part, '__qualname__', '')}"
    try:
        return location if import_object(location) is part else None
    except (ImportError, AttributeError, ValueError):
        return None


@cache
def plugins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; of two with one name, the first distribution's."""
    from importlib.metadata import entry_points  # start-up time, see above

    found: dict[str, EntryPoint] = {}
    for entry in sorted(
        entry_points(group=group),
        key=lambda entry_point: (entry_point.name, _distribution(entry_point)),
    ):
        found.setdefault(entry.name, entry)
    return found


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def implements(part: object, protocol: Callable[..., P]) -> TypeGuard[P]:
    """Whether a part's class implements a protocol.

    Cached per class: the check costs as much as a small stage, and a recall makes thirty.
    """
    kind: Any = type(part)
    return _class_implements(kind, protocol)


@cache
def _class_implements(kind: Any, protocol: Any) -> bool:
    return issubclass(kind, protocol)
