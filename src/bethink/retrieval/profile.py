"""Profiles: which retrievers and stages fill the slots, read from TOML.

The slots and their order belong to the engine; a profile only fills them. Mistakes are
reported on loading with file, key and allowed values.
"""

from __future__ import annotations

import math
import os
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Generic, TypeVar, cast

from bethink.config.changes import Change, apply_change
from bethink.config.paths import is_file
from bethink.config.settings import Settings
from bethink.core import closest_name
from bethink.core.dataclass import dataclass, field, field_types, replace
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.registry import Registry, import_own_class
from bethink.core.small_files import read_small_text
from bethink.core.toml import parse_toml
from bethink.errors import BadProfile, BadSetting, NotFound
from bethink.model import LEVELS, Pool
from bethink.retrieval.answer_text import Section
from bethink.retrieval.context import AnswerExtras, Assembler, Fusion, Retriever, Stage
from bethink.retrieval.deep import DeepSettings
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.stages import ASSEMBLERS, FUSIONS, STAGES
from bethink.retrieval.stages.assemble import Budget, Track
from bethink.retrieval.stages.fusion import WeightedSum

T = TypeVar("T")
_Table = Mapping[str, object]


class Bounds(NamedTuple):
    """The range a number may lie in; ``open`` excludes the lower bound itself."""

    low: float = -math.inf
    high: float = math.inf
    open: bool = False

    def contains(self, value: float) -> bool:
        """Whether a number lies within the bounds."""
        return self.low <= value <= self.high and not (self.open and value == self.low)

    def __str__(self) -> str:
        """Description of the allowed numbers."""
        if self.high < math.inf:
            return f"from {self.low:g} to {self.high:g}"
        return f"above {self.low:g}" if self.open else f"{self.low:g} or more"


_ANY = Bounds()
_ABOVE_ZERO = Bounds(0, open=True)
_FROM_ZERO = Bounds(0)
_SHARE = Bounds(0, 1)
_FIELDS_BY_BOUNDS = (
    (
        _ABOVE_ZERO,
        """depth half_life_days tokens before_days after_days top crowd count postings_budget k1
        limit max_tokens oversample each wordless days""",
    ),
    (
        _FROM_ZERO,
        """k pool seeds steps hops floor tau_days most enough about_weight threshold decay_interval
        grace_s""",
    ),
    (
        _SHARE,
        """b hub_share min_share min_relevance unknown_share keyword_weight keep relevance
        min_coverage decay_rate regain min_likeness""",
    ),
)
_BOUNDS_BY_FIELD = {name: limits for limits, names in _FIELDS_BY_BOUNDS for name in names.split()}
_BOUNDS_BY_SLOT_FIELD = {"budget.k": Bounds(1, 200), "channels.weight": _FROM_ZERO}


def bounds_of(slot: str, name: str) -> Bounds:
    """The bounds of a field in a slot; outside them recall would fail or be meaningless."""
    return _BOUNDS_BY_SLOT_FIELD.get(f"{slot}.{name}") or _BOUNDS_BY_FIELD.get(name, _ANY)


# Relative to this file; importlib.resources costs 6 ms to load.
_PACKAGE_FOLDER = Path(__file__).parent.parent
SLOTS = ("expand", "adjust", "rerank", "diversify", "gate")


@dataclass(frozen=True, slots=True)
class Profile:
    """A pipeline configuration: retrievers, fusion and the stages of each slot. Frozen."""

    name: str
    channels: tuple[Retriever, ...]
    fuse: Fusion
    title: str = ""
    expand: tuple[Stage, ...] = ()
    adjust: tuple[Stage, ...] = ()
    rerank: tuple[Stage, ...] = ()
    diversify: tuple[Stage, ...] = ()
    gate: tuple[Stage, ...] = ()
    budget: Budget = field(default_factory=Budget)
    assemble: tuple[Assembler, ...] = ()
    track: Track = field(default_factory=Track)
    text: tuple[Section, ...] = ()
    untopiced: bool = False
    shared: bool = False
    deeper: str = ""
    deep: DeepSettings | None = None

    def slot(self, name: str) -> tuple[Stage, ...]:
        """The stages in one of the slots."""
        stages: tuple[Stage, ...] = getattr(self, name)
        return stages

    def for_browsing(self) -> Profile:
        """The same profile for a query without words: the newest memories that pass the filters."""
        from bethink.retrieval.retrievers.temporal import Newest  # start-up time: rarely needed

        empty: Json = dict.fromkeys(SLOTS, ())
        return replace(self, channels=(Newest(),), fuse=WeightedSum(scale="own"), **empty)

    def without(self, part: str) -> Profile:
        """The same profile with one slot emptied, or one retriever or stage removed by name."""
        if part in SLOTS:
            emptied: Json = {part: (), "name": f"{self.name} without {part}"}
            return replace(self, **emptied)
        slots: Json = {
            slot: tuple(stage for stage in self.slot(slot) if stage.name != part) for slot in SLOTS
        }
        channels = tuple(channel for channel in self.channels if channel.name != part)
        changed = replace(self, channels=channels, **slots)
        if changed == self:
            raise NotFound(f"profile {self.name} has no slot, channel or stage {part!r}")
        return replace(changed, name=f"{self.name} without {part}")


def profile_names(folders: Iterable[Path] = ()) -> dict[str, Path | None]:
    """The names of all profiles, with the file of each user-defined one."""
    names: dict[str, Path | None] = dict.fromkeys(_shipped_names())
    for folder in folders:
        if folder.is_dir():
            names.update({path.stem: path for path in sorted(folder.glob("*.toml"))})
    return names


@cache
def _own_names() -> tuple[str, ...]:
    files = os.listdir(_PACKAGE_FOLDER / "profiles")  # noqa: PTH208 - pathlib takes longer
    return tuple(file.removesuffix(".toml") for file in files if file.endswith(".toml"))


@cache
def _shipped_names() -> tuple[str, ...]:
    systems = _PACKAGE_FOLDER / "systems"
    emulated = [
        path.parent.name + path.stem.removeprefix("profile")
        for path in systems.glob("*/profile*.toml")
    ]
    return tuple(sorted([*_own_names(), *emulated]))


def _shipped_file(name: str) -> str:
    """The path of a shipped profile inside the package.

    "default" is profiles/default.toml, "name" is systems/name/profile.toml and "name-deep"
    is systems/name/profile-deep.toml.
    """
    own = f"profiles/{name}.toml"
    if is_file(_PACKAGE_FOLDER / own):
        return own
    system, dash, variant = name.partition("-")
    return f"systems/{system}/profile{dash}{variant}.toml"


def load_profile(
    name: str,
    folders: Iterable[Path] = (),
    changes: Iterable[Change] = (),
    *,
    trusted: Path | None = None,
) -> Profile:
    """Load a profile by name: the user's own first, then the shipped ones.

    ``changes`` come from the variables and config files of its original system
    (``ForeignConfig``). Profiles in the folder ``trusted`` may name classes to import
    (``use = "package.module:Class"``); those of a project, which may come from strangers,
    may not.
    """
    folders = tuple(folders)
    # Every recall calls this: checking one file costs a tenth of listing all.
    is_shipped = name in _own_names() or name in _shipped_names()
    if is_shipped and not any(is_file(folder / f"{name}.toml") for folder in folders):
        return _load_shipped(name, tuple(changes))
    known = profile_names(folders)
    if name not in known:
        closest = closest_name(name, known)
        hint = f"did you mean {closest!r}?" if closest else f"there are: {', '.join(sorted(known))}"
        raise NotFound(f"there is no profile {name!r:.80}", remedy=hint)
    path = known[name]
    if path is None:
        return _load_shipped(name, tuple(changes))
    return load_profile_file(path, changes, trusted=trusted)


def configured_profile(name: str, settings: Settings, folders: Iterable[Path]) -> Profile:
    """Load a profile by name, with what the settings change in it."""
    own = settings.own_profile_folder()
    return load_profile(name, folders, settings.changes(name), trusted=own)


def profile_source(name: str, folders: Iterable[Path] = ()) -> str:
    """The text of a profile's file, for a copy to change."""
    path = profile_names(folders).get(name) or _PACKAGE_FOLDER / _shipped_file(name)
    return read_small_text(path, BadProfile)


@cache
def _load_shipped(name: str, changes: tuple[Change, ...] = ()) -> Profile:
    path = _shipped_file(name)
    text = read_small_text(_PACKAGE_FOLDER / path, BadProfile)
    return parse_profile(text, name, path, changes)


def load_profile_file(
    path: Path, changes: Iterable[Change] = (), *, trusted: Path | None = None
) -> Profile:
    """Load a profile from a file; its name is the file's stem. See `load_profile`."""
    may_import = trusted is not None and path.absolute().parent == trusted.absolute()
    text = read_small_text(path, BadProfile)
    return parse_profile(text, path.stem, str(path), changes, may_import=may_import)


def parse_profile(
    text: str, name: str, where: str, changes: Iterable[Change] = (), *, may_import: bool = False
) -> Profile:
    """Parse a profile's TOML; ``where`` names the file in error messages.

    ``may_import`` allows parts that are named by "package.module:Class".
    """
    try:
        table = parse_toml(text)
    except ValueError as error:
        raise BadProfile(f"{where}: not valid TOML: {error}") from error
    builder = _Builder(table, where, may_import=may_import)
    profile = builder.build(name)
    builder.check_after_names(profile.channels)
    for change in changes:
        apply_change(table, change)
        try:
            profile = builder.build(name)
        except BadProfile as error:
            raise BadSetting(f"{change.where}: {error.message}", remedy=error.remedy) from error
    return profile


class _PartKind(NamedTuple, Generic[T]):
    """What a slot takes: a registry, and the number of arguments and the result of a call."""

    registry: Registry[Callable[..., T]]
    arguments: int
    returns: object = Pool


_MAX_PARTS = 64  # of a slot: a project's profile must not make a recall take minutes
_RETRIEVER = _PartKind(RETRIEVERS, 1)
_FUSION = _PartKind(FUSIONS, 2)
_STAGE = _PartKind(STAGES, 2)
_ASSEMBLER = _PartKind(ASSEMBLERS, 2, AnswerExtras)
_KEYS = (
    *("title", "untopiced", "shared", "channels", "fuse", *SLOTS, "budget", "assemble"),
    *("track", "text", "deeper", "deep"),
)


class _Builder:
    """Builds a profile from a table; errors name the file and the key."""

    def __init__(self, table: _Table, where: str, *, may_import: bool) -> None:
        self._table, self._where, self._may_import = table, where, may_import

    def build(self, name: str) -> Profile:
        """Return the profile of the table."""
        _refuse_unknown_keys(self._table, _KEYS, self._where)
        channels = self._parts("channels", _RETRIEVER)
        if not channels:
            raise BadProfile(
                f"{self._where}: a profile needs at least one channel under [[channels]]"
            )
        names = [channel.name for channel in channels]
        if len(set(names)) < len(names):
            raise BadProfile(
                f"{self._where}: two channels have the same name; set `name` on one of them"
            )
        slots = {slot: self._parts(slot, _STAGE) for slot in SLOTS}
        table = self._table
        return Profile(
            name=name,
            title=self._text("title"),
            channels=channels,
            fuse=self._part(table.get("fuse", {"use": "rrf"}), "fuse", _FUSION),
            budget=self._dataclass(Budget, table.get("budget", {}), "budget"),
            assemble=self._parts("assemble", _ASSEMBLER),
            track=self._dataclass(Track, table.get("track", {}), "track"),
            text=tuple(
                self._dataclass(Section, entry, f"text[{number}]")
                for number, entry in enumerate(self._tables("text"))
            ),
            untopiced=self._flag("untopiced"),
            shared=self._flag("shared"),
            deeper=self._text("deeper"),
            deep=self._dataclass(DeepSettings, table["deep"], "deep") if "deep" in table else None,
            **slots,
        )

    def _parts(self, key: str, kind: _PartKind[T]) -> tuple[T, ...]:
        return tuple(
            self._part(entry, f"{key}[{number}]", kind)
            for number, entry in enumerate(self._tables(key))
        )

    def _tables(self, key: str) -> list[object]:
        entries = self._table.get(key, [])
        if not isinstance(entries, list):
            raise BadProfile(f"{self._where}: {key} must be written as [[{key}]] tables")
        if len(entries) > _MAX_PARTS:
            raise BadProfile(f"{self._where}: there are more than {_MAX_PARTS} tables [[{key}]]")
        return entries

    def _part(self, entry: object, key: str, kind: _PartKind[T]) -> T:
        if not isinstance(entry, dict) or not isinstance(entry.get("use"), str):
            raise BadProfile(f'{self._where}: {key} must be a table with a `use = "..."`')
        use = entry["use"]
        settings = {name: value for name, value in entry.items() if name != "use"}
        if kind.registry.is_builtin(use):
            return self._dataclass(kind.registry[use], settings, key)
        part = self._foreign_class(use, key, kind)
        try:
            built = self._dataclass(part, settings, key)
        except (TypeError, ValueError) as error:
            raise BadProfile(f"{self._where}: {key}: {error}") from error
        needed: list[tuple[str, type | UnionType]] = [("name", str)]
        needed += [("weight", int | float)] if kind is _RETRIEVER else []
        for attribute, type_ in needed:
            if not isinstance(getattr(built, attribute, None), type_):
                raise BadProfile(
                    f"{self._where}: {key}.use is {use!r:.80}, which has no `{attribute}`"
                )
        return built

    def _foreign_class(self, use: str, key: str, kind: _PartKind[T]) -> Callable[..., T]:
        """The class of a plug-in, or of "package.module:Class"; refused where it does not fit."""
        mistake = f"{self._where}: {key}.use is {use!r:.80}"
        if ":" in use:
            part: Callable[..., T] = self._import_part(use, mistake)
        else:
            if use not in kind.registry:
                _require_one_of(use, sorted(kind.registry), mistake)
            part = kind.registry[use]
        if problem := _misfit(part, kind):
            raise BadProfile(f"{mistake}, which is no {kind.registry.kind}: {problem}")
        return part

    def _import_part(self, use: str, mistake: str) -> Any:
        if not self._may_import:
            raise BadProfile(
                f"{mistake}, but only a profile in your own folder may import code",
                remedy="move the profile to the folder `profiles` next to your config.toml, "
                "or install the part as a plug-in and use its name",
            )
        try:
            return import_own_class(use)
        except Exception as error:
            raise BadProfile(
                f"{mistake}, which cannot be imported: {type(error).__name__}: {error}"
            ) from error

    def _dataclass(self, part: Callable[..., T], settings: object, key: str) -> T:
        if not isinstance(settings, dict):
            raise BadProfile(f"{self._where}: {key} must be a table")
        fields = field_types(cast("type", part))
        _refuse_unknown_keys(settings, fields, f"{self._where}: {key}")
        hints = _types_of(part, {name: fields[name] for name in settings})
        values = {
            name: _coerce(value, hints[name], f"{self._where}: {key}.{name}")
            for name, value in settings.items()
        }
        for name, value in values.items():
            _check_value(name, value, key.partition("[")[0], f"{self._where}: {key}.{name}")
        return part(**values)

    def _text(self, key: str) -> str:
        value = self._table.get(key, "")
        if not isinstance(value, str):
            raise BadProfile(f"{self._where}: {key} is {value!r:.80}, but must be a string")
        return value

    def _flag(self, key: str) -> bool:
        return bool(_coerce(self._table.get(key, False), bool, f"{self._where}: {key}"))

    def check_after_names(self, channels: Sequence[Retriever]) -> None:
        """Check that the retrievers named in ``after`` exist, by name or by family (`sf`)."""
        known = {part for one in channels for part in (one.name, one.name.split(".")[0])}
        for number, (entry, channel) in enumerate(
            zip(self._tables("channels"), channels, strict=True)
        ):
            named = entry.get("after", []) if isinstance(entry, dict) else []
            for name in [named] if isinstance(named, str) else named:
                # A part's own default may name a channel that the profile does not have.
                if name != _field_default(channel, "after"):
                    mistake = (
                        f"{self._where}: channels[{number}].after: there is no channel {name!r:.80}"
                    )
                    _require_one_of(name, sorted(known), mistake)


def _field_default(part: object, name: str) -> object:
    import dataclasses  # start-up time: the default profile has no such field

    fields = (one for one in dataclasses.fields(cast("type", part)) if one.name == name)
    return next((one.default for one in fields), None)


def _misfit(part: object, kind: _PartKind[T]) -> str:
    """Why a class does not fit its slot; empty where it does."""
    import dataclasses  # start-up time: shipped profiles have no foreign parts

    if not isinstance(part, type) or not dataclasses.is_dataclass(part):
        return "it must be a dataclass, whose fields are the settings"
    if getattr(part, "__hash__", None) is None:
        return "it must be frozen: @dataclass(frozen=True)"
    calls = (vars(base)["__call__"] for base in part.__mro__ if "__call__" in vars(base))
    call = next(calls, None)
    from inspect import signature  # start-up time: shipped profiles have no foreign parts

    try:
        signature(call).bind(*range(1 + kind.arguments))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return f"it must be called with {kind.arguments} argument{'s' * (kind.arguments > 1)}"
    try:
        typing.get_type_hints(part)
        returned = typing.get_type_hints(call).get("return", kind.returns)
    except NameError as error:
        return f"its annotations cannot be read: {error}"
    if (returned is AnswerExtras) != (kind.returns is AnswerExtras):
        return f"a call must return {getattr(kind.returns, '__name__', 'a Pool')}"
    return ""


_PLAIN_TYPES: dict[object, type] = {"bool": bool, "float": float, "int": int, "str": str}


def _types_of(part: object, written: Mapping[str, object]) -> Mapping[str, object]:
    """Return the types of fields; plain ones without `get_type_hints`: start-up time."""
    if all(kind in _PLAIN_TYPES for kind in written.values()):
        return {name: _PLAIN_TYPES[kind] for name, kind in written.items()}
    return typing.get_type_hints(part)


def _check_value(name: str, value: object, slot: str, where: str) -> None:
    """Check a value against its bounds and level names."""
    if name in _LEVEL_FIELDS and isinstance(value, tuple):
        for level in (entry if isinstance(entry, str) else entry[0] for entry in value):
            _require_one_of(level, LEVELS, f"{where}: {level!r:.80} is no level")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    allowed = bounds_of(slot, name)
    if not allowed.contains(value):
        raise BadProfile(f"{where} is {value!r:.80}, but must be {allowed}")


_LEVEL_FIELDS = frozenset({"levels", "faded", "most"})


def _require_one_of(value: str, allowed: Iterable[str], mistake: str) -> None:
    if value not in (known := tuple(allowed)):
        raise BadProfile(mistake, remedy=f"allowed: {', '.join(known)}")


def _coerce(value: object, target_type: object, where: str) -> object:
    """Convert a TOML value to the field's type; tables and lists become tuples."""
    origin, args = typing.get_origin(target_type), typing.get_args(target_type)
    if origin in (typing.Union, UnionType):
        return _coerce(value, next(arg for arg in args if arg is not type(None)), where)
    if origin is typing.Literal:
        if value in args:
            return value
        raise BadProfile(
            f"{where} is {value!r:.80}", remedy=f"allowed: {', '.join(map(str, args))}"
        )
    pairs = origin is tuple and typing.get_origin(args[0]) is tuple
    if pairs and isinstance(value, dict):
        number = typing.get_args(args[0])[-1]
        return tuple(
            sorted((name, _coerce(one, number, f"{where}.{name}")) for name, one in value.items())
        )
    if origin is tuple and isinstance(value, list) and not (pairs and value):
        return tuple(_coerce(entry, args[0], where) for entry in value)
    is_bool = isinstance(value, bool)
    if target_type is float and isinstance(value, int) and not is_bool:
        return float(value)
    if isinstance(target_type, type) and isinstance(value, target_type):
        is_finite = not isinstance(value, float) or value - value == 0
        if is_finite and not (target_type is int and is_bool):
            return value
    expected = "a table" if pairs else _TYPE_NAMES.get(target_type, "a list")
    raise BadProfile(f"{where} is {value!r:.80}, but must be {expected}")


_TYPE_NAMES: dict[object, str] = {
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    str: "text in quotes",
}


def _refuse_unknown_keys(table: Iterable[str], allowed: Iterable[str], where: str) -> None:
    for key in table:
        if key not in allowed:
            closest = closest_name(key, allowed)
            hint = f"did you mean {closest!r}? " if closest else ""
            raise BadProfile(
                f"{where}: there is no setting {key!r:.80}",
                remedy=f"{hint}allowed: {', '.join(allowed)}",
            )
