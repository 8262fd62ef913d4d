"""What can be set: the defaults, what each setting may be, and the check of a value.

The table ``SETTINGS`` is all there is: loading, checking, ``recollect config`` and
the documentation read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from recollect.aliases import Change, Theirs
from recollect.errors import BadSetting
from recollect.places import PROJECT_FOLDER

ENVIRONMENT = "RECOLLECT_"
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
    worker: str = "auto"
    worker_idle: int = 600
    maintain_in_background: bool = False
    project: Path | None = None
    config: Path | None = None
    theirs: Theirs = field(default_factory=lambda: Theirs({}))
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def origin(self, name: str) -> Origin:
        """Where the setting's value came from."""
        return self.origins.get(setting_named(name).name, _DEFAULT)

    def given(self, name: str) -> Any:
        """The value if anybody set it, else None: for what a profile has a say in too."""
        return getattr(self, name) if self.origin(name) != _DEFAULT else None

    def changes(self, profile: str) -> tuple[Change, ...]:
        """What the variables and config files of a profile's own system change about it."""
        return tuple(one for one in self.theirs.changes(profile) if one.verb != "setting")

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
    Setting(
        "worker", str, "whether a local process keeps models loaded: auto where one takes long to "
        "load", allowed=("auto", "on", "off"),
    ),
    Setting("worker_idle", int, "after how many idle seconds the worker ends", limits=(1, 86_400)),
    Setting("maintain_in_background", bool, "whether the worker tidies up while it is idle"),
)  # fmt: skip
BY_NAME = {setting.name: setting for setting in SETTINGS}

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


def setting_named(name: str, where: str = "") -> Setting:
    if name in BY_NAME:
        return BY_NAME[name]
    near = similar_setting(name)
    hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(BY_NAME)}"
    raise BadSetting(f"{where and where + ': '}there is no setting {name!r}", remedy=hint)


def similar_setting(name: str) -> str | None:
    from difflib import get_close_matches  # start-up time: only for mistakes

    return next(iter(get_close_matches(name, BY_NAME, n=1, cutoff=0.7)), None)


def parsed(setting: Setting, text: str, where: str) -> Any:
    try:
        return _READ[setting.type](text.strip())
    except (ValueError, KeyError) as error:
        raise _bad(setting, text, where) from error


def checked(setting: Setting, value: Any, where: str) -> Any:
    wanted = (str, Path) if setting.type is Path else setting.type
    right = isinstance(value, wanted) and (setting.type is bool or not isinstance(value, bool))
    if not right or not _allowed(setting, value):
        raise _bad(setting, value, where)
    return Path(value) if setting.type is Path else value


def _allowed(setting: Setting, value: Any) -> bool:
    if setting.allowed:
        return value in setting.allowed or provided(setting, value)
    if setting.limits:
        return bool(setting.limits[0] <= value <= setting.limits[1])
    if setting.pattern:
        return bool(setting.pattern.fullmatch(value))
    return setting.type is bool or (bool(text := str(value)) and text.isprintable())


def provided(setting: Setting, value: Any) -> bool:
    provider, _, model = str(value).partition(":")
    return provider in setting.providers and bool(model.strip()) and model.isprintable()


def _bad(setting: Setting, value: Any, where: str) -> BadSetting:
    shown = str(value) if isinstance(value, Path) else value
    default = "found by itself" if setting.default is None else json.dumps(setting.default)
    return BadSetting(
        f"{where} is {shown!r}, but must be {setting.expected}",
        remedy=f"change it, or leave it out: then it is {default}",
    )
