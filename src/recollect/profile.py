"""A profile: which channels and what fills each slot, read from TOML.

The slots are the engine's and so is their order; a profile only says what fills
them. Mistakes are found on loading and named by file, key and allowed values.
"""

from __future__ import annotations

import dataclasses
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from recollect.aliases import Change, apply_change
from recollect.bounds import bounds
from recollect.channels import CHANNELS
from recollect.context import Assembler, Channel, Fusion, Stage
from recollect.deepening.settings import Deep
from recollect.errors import BadProfile, BadSetting, NotFound
from recollect.model import LEVELS
from recollect.places import is_file
from recollect.present import Section
from recollect.stages import ASSEMBLERS, FUSIONS, STAGES
from recollect.stages.budget import Budget
from recollect.stages.fuse import Weighted
from recollect.stages.track import Track

# Beside this file, packed into a wheel or not; importlib.resources costs 6 ms to load.
_SHIPPED = Path(__file__).with_name("profiles")
SLOTS = ("expand", "adjust", "rerank", "diversify", "gate")


@dataclass(frozen=True, slots=True)
class Profile:
    """Named slots, filled. Frozen, so profiles compare and an ablation is one call."""

    name: str
    channels: tuple[Channel, ...]
    fuse: Fusion
    title: str = ""
    expand: tuple[Stage, ...] = ()
    adjust: tuple[Stage, ...] = ()
    rerank: tuple[Stage, ...] = ()
    diversify: tuple[Stage, ...] = ()
    gate: tuple[Stage, ...] = ()
    budget: Budget = dataclasses.field(default_factory=Budget)
    assemble: tuple[Assembler, ...] = ()
    track: Track = dataclasses.field(default_factory=Track)
    text: tuple[Section, ...] = ()
    untopiced: bool = False
    deeper: str = ""
    deep: Deep | None = None

    def slot(self, name: str) -> tuple[Stage, ...]:
        """The stages in one of the slots."""
        stages: tuple[Stage, ...] = getattr(self, name)
        return stages

    def looking(self) -> Profile:
        """The same for a question without words: it asks for the newest that is left."""
        empty: dict[str, Any] = dict.fromkeys(SLOTS, ())
        from recollect.channels.newest import Newest  # start-up time: few ask so

        return dataclasses.replace(self, channels=(Newest(),), fuse=Weighted(scale="own"), **empty)

    def without(self, part: str) -> Profile:
        """The same with one slot emptied, or one channel or stage taken out by name."""
        if part in SLOTS:
            emptied: dict[str, Any] = {part: (), "name": f"{self.name} without {part}"}
            return dataclasses.replace(self, **emptied)
        changes: dict[str, Any] = {
            slot: tuple(stage for stage in self.slot(slot) if stage.name != part) for slot in SLOTS
        }
        changes["channels"] = tuple(channel for channel in self.channels if channel.name != part)
        changed = dataclasses.replace(self, **changes)
        if changed == self:
            raise NotFound(f"profile {self.name} has no slot, channel or stage {part!r}")
        return dataclasses.replace(changed, name=f"{self.name} without {part}")


def profile_names(folders: Iterable[Path] = ()) -> dict[str, Path | None]:
    """Profiles that can be named, and the file of each that is the user's own."""
    names: dict[str, Path | None] = dict.fromkeys(_shipped_names())
    for folder in folders:
        if folder.is_dir():
            names.update({path.stem: path for path in sorted(folder.glob("*.toml"))})
    return names


@cache
def _shipped_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.toml")))


def load_profile(
    name: str, folders: Iterable[Path] = (), changes: Iterable[Change] = ()
) -> Profile:
    """A profile by name: the user's own first, then those that come with Recollect.

    ``changes`` are what its system's own variables and config files say (``Theirs``).
    """
    folders = tuple(folders)
    # Every recall comes here: looking for one file is a tenth of listing all.
    if name in _shipped_names() and not any(is_file(at / f"{name}.toml") for at in folders):
        return _shipped(name, tuple(changes))
    known = profile_names(folders)
    if name not in known:
        near = _similar(name, known)
        hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(sorted(known))}"
        raise NotFound(f"there is no profile {name!r}", remedy=hint)
    path = known[name]
    if path is None:
        return _shipped(name, tuple(changes))
    return profile_of_file(path, changes)


@cache
def _shipped(name: str, changes: tuple[Change, ...] = ()) -> Profile:
    text = _read(_SHIPPED / f"{name}.toml")
    return parse_profile(text, name, f"profiles/{name}.toml", changes)


def profile_of_file(path: Path, changes: Iterable[Change] = ()) -> Profile:
    """The profile that a file holds, called as the file is."""
    return parse_profile(_read(path), path.stem, str(path), changes)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadProfile(f"{path}: not UTF-8 text: {error.reason}") from error
    except OSError as error:
        raise BadProfile(f"{path} cannot be read: {error.strerror}") from error


def parse_profile(text: str, name: str, where: str, changes: Iterable[Change] = ()) -> Profile:
    """Reads a profile's TOML; ``where`` is what errors call the file."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadProfile(f"{where}: not valid TOML: {error}") from error
    profile = _filled(table, name, where)
    _check_names(table, [channel.name for channel in profile.channels], where)
    for change in changes:
        apply_change(table, change)
        try:
            profile = _filled(table, name, where)
        except BadProfile as error:
            raise BadSetting(f"{change.where}: {error.message}", remedy=error.remedy) from error
    return profile


def _filled(table: Mapping[str, Any], name: str, where: str) -> Profile:
    allowed = (
        *("title", "untopiced", "channels", "fuse", *SLOTS, "budget", "assemble", "track"),
        *("text", "deeper", "deep"),
    )
    _only(table, allowed, where)
    channels = _list_of(table, "channels", CHANNELS, where)
    if not channels:
        raise BadProfile(f"{where}: a profile needs at least one channel under [[channels]]")
    names = [channel.name for channel in channels]
    if len(set(names)) < len(names):
        raise BadProfile(f"{where}: two channels have the same name; set `name` on one of them")
    slots = {slot: _list_of(table, slot, STAGES, where) for slot in SLOTS}
    return Profile(
        name=name,
        title=_text(table, "title", where),
        channels=channels,
        fuse=_part(table.get("fuse", {"use": "rrf"}), "fuse", FUSIONS, where),
        budget=_fill(Budget, table.get("budget", {}), "budget", where),
        assemble=_list_of(table, "assemble", ASSEMBLERS, where),
        track=_fill(Track, table.get("track", {}), "track", where),
        text=tuple(
            _fill(Section, entry, f"text[{number}]", where)
            for number, entry in enumerate(_entries(table, "text", where))
        ),
        untopiced=_coerce(table.get("untopiced", False), bool, f"{where}: untopiced"),
        deeper=_text(table, "deeper", where),
        deep=_fill(Deep, table["deep"], "deep", where) if "deep" in table else None,
        **slots,
    )


def _check_names(table: Mapping[str, Any], names: list[str], where: str) -> None:
    """Whether the channels that others wait for are there, by name or by family (`sf`)."""
    known = {*names, *(name.partition(".")[0] for name in names)}
    for number, entry in enumerate(table["channels"]):
        named = entry.get("after", [])
        for name in [named] if isinstance(named, str) else named:
            # A part's own default may name a channel that a profile does without.
            if name != CHANNELS[entry["use"]]().after:
                mistake = f"{where}: channels[{number}].after: there is no channel {name!r}"
                _one_of(name, sorted(known), mistake)


def _list_of(
    table: Mapping[str, Any], key: str, parts: Mapping[str, Any], where: str
) -> tuple[Any, ...]:
    entries = _entries(table, key, where)
    return tuple(
        _part(entry, f"{key}[{number}]", parts, where) for number, entry in enumerate(entries)
    )


def _entries(table: Mapping[str, Any], key: str, where: str) -> list[Any]:
    entries = table.get(key, [])
    if not isinstance(entries, list):
        raise BadProfile(f"{where}: {key} must be written as [[{key}]] tables")
    return entries


def _part(entry: Any, key: str, parts: Mapping[str, Any], where: str) -> Any:
    if not isinstance(entry, dict) or not isinstance(entry.get("use"), str):
        raise BadProfile(f'{where}: {key} must be a table with a `use = "..."`')
    use = entry["use"]
    _one_of(use, sorted(parts), f"{where}: {key}.use is {use!r}")
    settings = {name: value for name, value in entry.items() if name != "use"}
    return _fill(parts[use], settings, key, where)


def _fill(part: Any, settings: Any, key: str, where: str) -> Any:
    if not isinstance(settings, dict):
        raise BadProfile(f"{where}: {key} must be a table")
    hints = typing.get_type_hints(part)
    fields = [field.name for field in dataclasses.fields(part)]
    _only(settings, fields, f"{where}: {key}")
    values = {
        name: _in_range(name, _coerce(value, hints[name], f"{where}: {key}.{name}"), where, key)
        for name, value in settings.items()
    }
    return part(**values)


def _in_range(name: str, value: Any, where: str, key: str) -> Any:
    """The value, unless it is one that no question could be answered with."""
    if name in _OF_LEVELS and isinstance(value, tuple):
        for level in (entry if isinstance(entry, str) else entry[0] for entry in value):
            _one_of(level, LEVELS, f"{where}: {key}.{name}: {level!r} is no level")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    allowed = bounds(key.partition("[")[0], name)
    if not allowed.hold(value):
        raise BadProfile(f"{where}: {key}.{name} is {value!r}, but must be {allowed}")
    return value


_OF_LEVELS = frozenset({"levels", "faded", "most"})


def _one_of(value: str, allowed: Iterable[str], mistake: str) -> None:
    if value not in (known := tuple(allowed)):
        raise BadProfile(mistake, remedy=f"allowed: {', '.join(known)}")


def _coerce(value: Any, wanted: Any, where: str) -> Any:
    """The value as the field's type; TOML tables and lists become tuples."""
    origin, args = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _coerce(value, next(arg for arg in args if arg is not type(None)), where)
    if origin is typing.Literal:
        if value in args:
            return value
        raise BadProfile(f"{where} is {value!r}", remedy=f"allowed: {', '.join(map(str, args))}")
    pairs = origin is tuple and typing.get_origin(args[0]) is tuple
    if pairs and isinstance(value, dict):
        number = typing.get_args(args[0])[-1]
        return tuple(
            sorted((name, _coerce(one, number, f"{where}.{name}")) for name, one in value.items())
        )
    if origin is tuple and isinstance(value, list) and not (pairs and value):
        return tuple(_coerce(entry, args[0], where) for entry in value)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    is_number = not (wanted is int and isinstance(value, bool))
    if isinstance(wanted, type) and isinstance(value, wanted) and _finite(value) and is_number:
        return value
    expected = "a table" if pairs else _IN_WORDS.get(wanted, "a list")
    raise BadProfile(f"{where} is {value!r}, but must be {expected}")


_IN_WORDS = {
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    str: "text in quotes",
}


def _finite(value: Any) -> bool:
    return not isinstance(value, float) or value - value == 0


def _similar(word: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # start-up time: only for mistakes

    return next(iter(get_close_matches(word, list(known), n=1)), None)


def _only(table: Mapping[str, Any], allowed: Iterable[str], where: str) -> None:
    for key in table:
        if key not in allowed:
            near = _similar(key, allowed)
            hint = f"did you mean {near!r}? " if near else ""
            raise BadProfile(
                f"{where}: there is no setting {key!r}",
                remedy=f"{hint}allowed: {', '.join(allowed)}",
            )


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise BadProfile(f"{where}: {key} is {value!r}, but must be a string")
    return value
