"""Settings: argument > environment > project file > user file > default.

The table ``SETTINGS`` is all there is: loading, checking, ``recollect config`` and
the documentation read it. Each value remembers where it came from.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from recollect.errors import BadSetting
from recollect.places import (
    CONFIG_VARIABLE,
    PROJECT_FOLDER,
    config_folder,
    find_project,
    home_folder,
    is_file,
    project_files,
    working_folder,
)

ENVIRONMENT = "RECOLLECT_"
NOT_A_PROJECTS = frozenset(
    {"data_dir", "max_classification", "actor", "allowed_roots", "notes_trust"}
)
# The personal space, and those that are named after other projects' folders.
_SOMEBODYS_SPACE = re.compile(r"personal|.*-[0-9a-f]{8}")
SPACE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Origin(NamedTuple):
    """Where a value came from, and exactly where there: a variable's name, a file."""

    kind: Literal["argument", "environment", "project file", "user file", "default"]
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.where}".rstrip()


_DEFAULT = Origin("default")


@dataclass(frozen=True)
class Settings:
    """Everything that can be configured, with the defaults.

    ``space`` and ``data_dir`` are found when they are not set (see ``spaces``).
    ``project`` is the root these settings were looked up from and ``config`` the
    user's folder; they are found, not set.
    """

    space: str | None = None
    data_dir: Path | None = None
    embedder: str = "wordllama"
    reranker: str = "none"
    llm: str = "none"
    profile: str = "default"
    k: int = 10
    max_tokens: int = 2000
    track: bool = False
    cache: bool = False
    max_classification: int = 2
    allowed_roots: str | None = None
    notes_dir: Path | None = None
    notes_trust: int = 1
    color: str = "auto"
    actor: str = "user"
    project: Path | None = None
    config: Path | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def origin(self, name: str) -> Origin:
        """Where the setting's value came from."""
        return self.origins.get(_setting(name).name, _DEFAULT)

    def given(self, name: str) -> Any:
        """The value if anybody set it, else None: for what a profile has a say in too."""
        return getattr(self, name) if self.origin(name) != _DEFAULT else None

    def profile_folders(self) -> tuple[Path, ...]:
        """Where profiles of one's own are; those of the project come last and win."""
        roots = (self.config, self.project and self.project / PROJECT_FOLDER)
        return tuple(root / "profiles" for root in roots if root is not None)


class Setting(NamedTuple):
    """One row of the table."""

    name: str
    type: type[str | int | bool | Path]
    help: str
    allowed: tuple[str | int, ...] = ()
    limits: tuple[int, int] | None = None
    pattern: re.Pattern[str] | None = None
    providers: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return ENVIRONMENT + self.name.upper()

    @property
    def default(self) -> Any:
        """What it is when nobody sets it."""
        return getattr(Settings(), self.name)

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        if self.allowed:
            named = "one of " + ", ".join(map(str, self.allowed))
            if not self.providers:
                return named
            return f"{named}, or a model of {', '.join(self.providers)} as PROVIDER:MODEL"
        if self.limits:
            return "a whole number from {:,} to {:,}".format(*self.limits)
        if self.pattern:
            return (
                "a name of 1 to 64 lower-case letters, digits, '.', '_' and '-' "
                "that begins with a letter or digit"
            )
        return {bool: "true or false", Path: "a path"}.get(self.type, "text on one line")


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "space", str, "which memory to use; else the project's own, found from the working "
        "directory", pattern=SPACE_NAME,
    ),
    Setting("data_dir", Path, "the folder that holds the memories; else the platform's"),
    Setting(
        "embedder", str, "what makes vectors of texts; none searches by words alone",
        allowed=("wordllama", "hash", "transformer", "none"),
        providers=("transformer", "sentence-transformers", "ollama", "openai"),
    ),
    Setting(
        "reranker", str, "what reads the best memories against the question; none leaves that out",
        allowed=("overlap", "cross-encoder", "llm", "none"),
        providers=("cross-encoder", "http", "https"),
    ),
    Setting(
        "llm", str, "the language model that jobs ask; none leaves them to rules",
        allowed=("none",), providers=("openai", "anthropic", "ollama"),
    ),
    Setting("profile", str, "how to recall when no profile is named"),
    Setting("k", int, "how many memories a recall returns at most", limits=(1, 200)),
    Setting(
        "max_tokens", int, "how many tokens a recall returns at most", limits=(1, 1_000_000)
    ),
    Setting("track", bool, "whether a recall notes which memories it returned"),
    Setting("cache", bool, "whether a question asked again of an unchanged memory is "
            "answered as before"),
    Setting(
        "max_classification", int, "the highest classification a recall shows: 0 public, "
        "1 internal, 2 confidential, 3 secret", allowed=(0, 1, 2, 3),
    ),
    Setting(
        "allowed_roots", str, "folders whose files may be read, separated as in PATH; else the "
        "project's own",
    ),
    Setting("notes_dir", Path, "a folder of daily, weekly and quarterly notes to search; else "
            "DATA_DIR/SPACE/notes"),
    Setting("notes_trust", int, "how far notes are trusted: 0 unknown to 3 the owner's word",
            allowed=(0, 1, 2, 3)),
    Setting(
        "color", str, "whether the command line uses colours", allowed=("auto", "always", "never"),
    ),
    Setting("actor", str, "who is written down in the journal as the one who did it"),
)  # fmt: skip
_BY_NAME = {setting.name: setting for setting in SETTINGS}

_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_READ: dict[type, Callable[[str], Any]] = {
    str: str,
    int: int,
    bool: lambda text: _WORDS[text.lower()],
    Path: str,
}


def load_settings(
    start: Path | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings that hold in the folder ``start`` (else the working directory).

    ``overrides`` are arguments; a None among them was not given. Every source is
    checked, those that are overruled too.
    """
    env = os.environ if env is None else env
    start = start or working_folder()
    project = start and find_project(start, home_folder(env))
    config = config_folder(env)
    found: dict[str, tuple[Any, Origin]] = {}
    for name, value, origin, folder in (
        *_from_file(config / "config.toml", "user file", config),
        *_from_project(project),
        *_from_environment(env, start),
        *_from_arguments(overrides or {}, start),
    ):
        found[name] = (_resolved(value, folder), origin)
    return Settings(
        **{name: value for name, (value, _) in found.items()},
        project=project,
        config=config,
        origins={name: origin for name, (_, origin) in found.items()},
    )


# A name, its checked value, where it came from, and what a relative path is relative to.
_Found = Iterator[tuple[str, Any, Origin, Path | None]]


def _from_file(path: Path, kind: Literal["user file", "project file"], folder: Path) -> _Found:
    if not is_file(path):
        return
    from recollect.config_file import read_table  # start-up time: most have no file

    origin = Origin(kind, str(path))
    for name, value in read_table(path).items():
        yield name, _checked(_setting(name, str(path)), value, f"{path}: {name}"), origin, folder


def _from_project(root: Path | None) -> _Found:
    if root is None or (path := _project_file(root)) is None:
        return
    for found in _from_file(path, "project file", root):
        refuse_in_project(found[0], found[1], str(path))
        _refuse_outside(found[0], found[1], root, str(path))
        yield found


def refuse_in_project(name: str, value: Any, where: str) -> None:
    """A project may come from strangers: it does not decide over the user's own memory,
    nor to which server, or into which folder's model, its texts go."""
    sent_on = _provided(_setting(name), value)
    somebodys = name == "space" and _SOMEBODYS_SPACE.fullmatch(str(value))
    if name in NOT_A_PROJECTS or somebodys or sent_on:
        raise BadSetting(
            f"{where}: a project cannot set {name} = {str(value)!r}",
            remedy="set it for yourself: recollect config set",
        )


def _refuse_outside(name: str, value: Any, root: Path, where: str) -> None:
    """A project's notes are files of the project, wherever a link may seem to put them."""
    if name != "notes_dir" or value is None:
        return
    place, inside = os.path.realpath(root / Path(value).expanduser()), os.path.realpath(root)
    if not Path(place).is_relative_to(inside):
        raise BadSetting(
            f"{where}: a project's notes_dir must lie inside the project, not in {str(value)!r}",
            remedy="set it for yourself: recollect config set",
        )


def _from_environment(env: Mapping[str, str], folder: Path | None) -> _Found:
    for variable in sorted(name for name in env if name.startswith(ENVIRONMENT)):
        name = variable.removeprefix(ENVIRONMENT).lower()
        if name in _BY_NAME and env[variable]:
            setting = _BY_NAME[name]
            value = _checked(setting, _parsed(setting, env[variable], variable), variable)
            yield name, value, Origin("environment", variable), folder
        elif name not in _BY_NAME and variable != CONFIG_VARIABLE and (near := _similar(name)):
            # Other parts have variables of their own; only a slip of the pen is refused.
            raise BadSetting(
                f"there is no setting {variable}", remedy=f"did you mean {_BY_NAME[near].variable}?"
            )


def _from_arguments(overrides: Mapping[str, Any], folder: Path | None) -> _Found:
    for name, value in overrides.items():
        if value is not None:
            setting = _setting(name)
            yield name, _checked(setting, value, f"argument {name}"), Origin("argument"), folder


def set_user_setting(name: str, value: Any, env: Mapping[str, str] | None = None) -> Path:
    """Writes one setting to the user's file (None takes it out); gives the file."""
    path = config_folder(os.environ if env is None else env) / "config.toml"
    here = working_folder()
    if value is not None and _setting(name).type is Path and here is not None:
        # Whoever types a relative path means one from here, not from the file's folder.
        value = here / Path(value).expanduser()
    return _write(path, name, value, keep_mode=False)


def set_project_setting(
    name: str, value: Any, start: Path | None = None, env: Mapping[str, str] | None = None
) -> Path:
    """Writes one setting to the file of the project that ``start`` is in."""
    start = start or working_folder()
    root = start and find_project(start, home_folder(os.environ if env is None else env))
    if root is None:
        raise BadSetting("this folder is in no project", remedy="mkdir .recollect makes it one")
    path = _project_file(root) or root / PROJECT_FOLDER / "config.toml"
    refuse_in_project(_setting(name).name, value, str(path))
    _refuse_outside(name, value, root, str(path))
    return _write(path, name, value, keep_mode=True)


def _write(path: Path, name: str, value: Any, *, keep_mode: bool) -> Path:
    from recollect.config_file import write_key  # start-up time: rarely needed

    setting = _setting(name)
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str):
        value = _parsed(setting, value, name)
    if value is not None:
        _checked(setting, value, name)
    write_key(path, name, value, keep_mode=keep_mode)
    return path


def _project_file(root: Path) -> Path | None:
    files = project_files(root)
    if len(files) > 1:
        raise BadSetting(f"both {files[0]} and {files[1]} are there", remedy="keep one of them")
    return files[0] if files else None


def _setting(name: str, where: str = "") -> Setting:
    if name in _BY_NAME:
        return _BY_NAME[name]
    near = _similar(name)
    hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(_BY_NAME)}"
    raise BadSetting(f"{where and where + ': '}there is no setting {name!r}", remedy=hint)


def _similar(name: str) -> str | None:
    from difflib import get_close_matches  # start-up time: only for mistakes

    return next(iter(get_close_matches(name, _BY_NAME, n=1, cutoff=0.7)), None)


def _parsed(setting: Setting, text: str, where: str) -> Any:
    try:
        return _READ[setting.type](text.strip())
    except (ValueError, KeyError) as error:
        raise _bad(setting, text, where) from error


def _checked(setting: Setting, value: Any, where: str) -> Any:
    wanted = (str, Path) if setting.type is Path else setting.type
    right = isinstance(value, wanted) and (setting.type is bool or not isinstance(value, bool))
    if not right or not _allowed(setting, value):
        raise _bad(setting, value, where)
    return Path(value) if setting.type is Path else value


def _allowed(setting: Setting, value: Any) -> bool:
    if setting.allowed:
        return value in setting.allowed or _provided(setting, value)
    if setting.limits:
        return bool(setting.limits[0] <= value <= setting.limits[1])
    if setting.pattern:
        return bool(setting.pattern.fullmatch(value))
    return setting.type is bool or (bool(text := str(value)) and text.isprintable())


def _provided(setting: Setting, value: Any) -> bool:
    provider, _, model = str(value).partition(":")
    return provider in setting.providers and bool(model.strip()) and model.isprintable()


def _bad(setting: Setting, value: Any, where: str) -> BadSetting:
    shown = str(value) if isinstance(value, Path) else value
    default = "found by itself" if setting.default is None else json.dumps(setting.default)
    return BadSetting(
        f"{where} is {shown!r}, but must be {setting.expected}",
        remedy=f"change it, or leave it out: then it is {default}",
    )


def _resolved(value: Any, folder: Path | None) -> Any:
    if not isinstance(value, Path):
        return value
    path = value.expanduser()
    return path if folder is None else folder / path
