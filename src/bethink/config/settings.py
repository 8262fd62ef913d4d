"""Settings: argument > environment > project file > user file > default.

The table ``SETTINGS`` is complete: loading, validation, the ``config`` command and the
documentation read it. Each value keeps its origin. A system's own names for settings are in
``systems/NAME/aliases.toml`` and count only while its profile is in use: only then
`bethink.config.aliases`, which reads them, is loaded.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from bethink.config import paths
from bethink.config.changes import SYSTEMS, Change, Source, aliases_file
from bethink.core import closest_name
from bethink.core.atomic_write import atomic_replace
from bethink.core.dataclass import dataclass, field, replace
from bethink.core.json_values import Json
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.registry import plugins
from bethink.core.small_files import read_small_text
from bethink.errors import BadSetting


@cache
def foreign_variables() -> frozenset[str]:
    """The variables of all systems: read from one list, not from each system's file."""
    return frozenset((SYSTEMS / "variables.txt").read_text(encoding="utf-8").split())


@dataclass(frozen=True, slots=True)
class ForeignConfig:
    """Where foreign names are looked up: the variables that are set, the home, the project."""

    variables: Mapping[str, str]
    home: Path | None = None
    project: Path | None = None

    @classmethod
    def from_environment(
        cls, env: Mapping[str, str], home: Path | None, project: Path | None
    ) -> ForeignConfig:
        """Build it from the variables of an environment that are known aliases."""
        return cls(
            {name: env[name] for name in foreign_variables() if env.get(name)}, home, project
        )

    def changes(self, profile: str) -> tuple[Change, ...]:
        """All changes to a profile, and to settings while that profile is in use."""
        if aliases_file(profile) is None:
            return ()
        from bethink.config.aliases import find_changes  # start-up time: for few profiles

        folders: dict[Source, Path | None] = {"user file": self.home, "project file": self.project}
        return find_changes(profile, self.variables, folders)


ENV_PREFIX = "BETHINK_"
SettingValue = str | int | Path | None  # a truth value is an int
_SIMILARITY = lazy_pattern(r"words|0\.[5-9]\d{0,3}|1(?:\.0+)?")
_UNASKED = lazy_pattern(
    r"off|(?:failure|touch|edit|contradiction)(?:,(?:failure|touch|edit|contradiction))*"
)
SPACE_NAME = lazy_pattern(r"[a-z0-9][a-z0-9._-]{0,63}")


class Origin(NamedTuple):
    """Where a value came from: the kind of source, and the variable or file."""

    kind: Literal["argument", "environment", "project file", "user file", "default"]
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.where}".rstrip()


_DEFAULT = Origin("default")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings with their defaults.

    ``space`` and ``data_dir`` are detected when they are not set (see ``spaces``).
    ``project`` is the root these settings were loaded for and ``config`` the user's folder;
    both are detected, not set.
    """

    space: str | None = None
    data_dir: Path | None = None
    store: str = "sqlite"
    embedder: str = "encoder"
    reranker: str = "none"
    llm: str = "none"
    profile: str = "default"
    k: int = 40
    max_tokens: int = 2000
    track: bool = False
    cache: bool = False
    max_classification: int = 2
    personal_numbers: str = "captured"
    allowed_roots: str | None = None
    notes_dir: Path | None = None
    notes_trust: int = 1
    color: str = "auto"
    actor: str = "user"
    worker: str = "auto"
    worker_idle: int = 600
    maintain_in_background: bool = False
    sync_in_background: bool = False
    maintain_every: int = 1440
    duplicate_similarity: str = "words"
    prompt_unsure: bool = False
    unasked: str = "failure,touch,edit,contradiction"
    ab_test: bool = False
    feedback: bool = False
    review_agent: str = "accept"
    review_tool: str = "wait"
    review_web: str = "wait"
    review_import: str = "accept"
    audit_reads: bool = False
    project: Path | None = None
    config: Path | None = None
    theirs: ForeignConfig = field(default_factory=lambda: ForeignConfig({}))
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def changed(self, **values: Any) -> Settings:
        """The same settings with other values for some."""
        return replace(self, **values)

    def origin(self, name: str) -> Origin:
        """The source of the setting's value."""
        return self.origins.get(find_setting(name).name, _DEFAULT)

    def explicit(self, name: str) -> Any:
        """The value if it was set explicitly, else None: for settings a profile can override."""
        return getattr(self, name) if self.origin(name) != _DEFAULT else None

    @property
    def least_similarity(self) -> float | None:
        """The setting ``duplicate_similarity`` as a number; None where words decide."""
        return None if self.duplicate_similarity == "words" else float(self.duplicate_similarity)

    @property
    def review(self) -> Mapping[str, str]:
        """What becomes of captured and imported texts, by source class."""
        named = {name: getattr(self, f"review_{name}") for name in REVIEWED}
        return named | {"unknown": self.review_web}

    def changes(self, profile: str) -> tuple[Change, ...]:
        """The changes that a profile's original system makes by its variables and config files."""
        return tuple(change for change in self.theirs.changes(profile) if change.verb != "setting")

    def own_profile_folder(self) -> Path | None:
        """The user's own folder of profiles; only these may name classes to import."""
        return self.config and self.config / "profiles"

    def profile_folders(self) -> tuple[Path, ...]:
        """Folders of user-defined profiles; the project's comes last and wins."""
        roots = (self.config, self.project and self.project / paths.PROJECT_FOLDER)
        return tuple(root / "profiles" for root in roots if root is not None)


class Setting(NamedTuple):
    """One row of the settings table."""

    name: str
    type: type[str | int | bool | Path]
    help: str
    allowed: tuple[str | int, ...] = ()
    limits: tuple[int, int] | None = None
    pattern: re.Pattern[str] | None = None
    providers: tuple[str, ...] = ()
    plugins: str = ""  # the entry-point group that adds to the allowed names
    former: tuple[tuple[str, str], ...] = ()  # older values or PROVIDER:, and what they mean now

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return ENV_PREFIX + self.name.upper()

    @property
    def default(self) -> SettingValue:
        """The default value."""
        return cast("SettingValue", getattr(Settings(), self.name))

    def current(self, value: object) -> object:
        """Return what a value means now, which may be one of an earlier version."""
        for old, new in self.former:
            if value == old or (old.endswith(":") and str(value).startswith(old)):
                return new + str(value).removeprefix(old)
        return value

    @property
    def expected(self) -> str:
        """Description of the allowed values."""
        if self.allowed:
            choices = "one of " + ", ".join(map(str, self.allowed))
            if not self.providers:
                return choices
            return f"{choices}, or a model of {', '.join(self.providers)} as PROVIDER:MODEL"
        if self.limits:
            return "a whole number from {:,} to {:,}".format(*self.limits)
        if self.pattern:
            return (
                "a name of 1 to 64 lower-case letters, digits, '.', '_' and '-' "
                "that begins with a letter or digit"
            )
        return {bool: "true or false", Path: "a path"}.get(self.type, "text on one line")


REVIEWED = {
    "agent": "what an agent says or stores", "tool": "the output of tools",
    "web": "texts of web pages and unknown sources", "import": "imports of unproven origin",
}  # fmt: skip
SETTINGS: tuple[Setting, ...] = (
    Setting(
        "space", str, "the space to use; default: the project's own, found from the working "
        "directory", pattern=SPACE_NAME,
    ),
    Setting(
        "data_dir", Path, "the folder of the memory files; default: the platform's data folder",
    ),
    Setting(
        "store", str, "where memories are stored: sqlite, one file for each space, or the URL of "
        "a PostgreSQL database, postgresql://...",
        allowed=("sqlite",), providers=("postgresql", "postgres"), plugins="bethink.stores",
    ),
    Setting(
        "embedder", str, "the model that embeds texts; none: search by words only",
        allowed=("encoder", "hash", "none"),
        former=(
            ("wordllama", "encoder"), ("words", "encoder"), ("transformer", "encoder"),
            ("transformer:", "sentence-transformers:"),
        ),
        providers=("sentence-transformers", "ollama", "openai"),
        plugins="bethink.embedders",
    ),
    Setting(
        "reranker", str, "the model that reranks the best memories; none: no reranking",
        allowed=("overlap", "cross-encoder", "llm", "none"),
        providers=("cross-encoder", "http", "https"),
        plugins="bethink.rerankers",
    ),
    Setting(
        "llm", str, "the language model for jobs and deep recall; none: rules only",
        allowed=("none",), providers=("openai", "anthropic", "ollama"),
        plugins="bethink.llms",
    ),
    Setting("profile", str, "the profile of a recall that names none"),
    Setting("k", int, "the maximum number of memories a recall returns", limits=(1, 200)),
    Setting(
        "max_tokens", int, "the maximum number of tokens a recall returns", limits=(1, 1_000_000)
    ),
    Setting("track", bool, "whether a recall records which memories it returned"),
    Setting("cache", bool, "whether a repeated question is answered from the cache while "
            "the memory is unchanged"),
    Setting(
        "max_classification", int, "the highest classification a recall returns: 0 public, "
        "1 internal, 2 confidential, 3 secret", allowed=(0, 1, 2, 3),
    ),
    Setting(
        "personal_numbers", str, "the texts whose personal numbers (IBAN, social security, tax and "
        "the like) are removed: captured ones, all or none",
        allowed=("captured", "all", "none"),
    ),
    Setting(
        "allowed_roots", str, "folders whose files may be read, separated as in PATH; default: "
        "the project's own",
    ),
    Setting("notes_dir", Path, "a folder of daily, weekly and quarterly notes to search; "
            "default: DATA_DIR/SPACE/notes"),
    Setting("notes_trust", int, "the trust of notes: 0 unknown to 3 owner",
            allowed=(0, 1, 2, 3)),
    Setting(
        "color", str, "whether the command line uses colours", allowed=("auto", "always", "never"),
    ),
    Setting("actor", str, "the name that the journal records for changes"),
    Setting(
        "worker", str, "whether a local process answers for commands, hooks and servers; auto: "
        "where it runs, started by hooks, servers and models that load slowly",
        allowed=("auto", "on", "off"),
    ),
    Setting(
        "worker_idle", int, "seconds without requests after which the worker stops",
        limits=(1, 86_400),
    ),
    Setting("maintain_in_background", bool, "whether the worker runs maintenance while idle"),
    Setting("sync_in_background", bool, "whether the worker syncs with known targets while idle"),
    Setting(
        "maintain_every", int, "minutes after which a job is due again in the background",
        limits=(1, 525_600),
    ),
    Setting(
        "duplicate_similarity", str, "the cosine from which other wordings are duplicates: 0.5 "
        "to 1, or words: only the same words are",
        pattern=_SIMILARITY,
    ),
    Setting("prompt_unsure", bool, "whether the prompt hook also gives what may be related"),
    Setting(
        "unasked", str, "the events on which hooks show one memory unasked: failure, touch, edit "
        "and contradiction, or off",
        pattern=_UNASKED,
    ),
    Setting(
        "ab_test", bool, "whether hooks give nothing to half of the sessions, chosen by chance, so "
        "that bethink helped can compare the two",
    ),
    Setting(
        "feedback", bool, "whether memories that agents used or ignored, as bethink helped tells, "
        "rank up to 5 % higher or lower",
    ),
    *(
        Setting(
            f"review_{name}", str, f"what becomes of {what}: accept, wait in the inbox, or worth: "
            "wait where it seems not worth keeping", allowed=("accept", "worth", "wait"),
        )
        for name, what in REVIEWED.items()
    ),
    Setting("audit_reads", bool, "whether a server records who was shown which memories"),
)  # fmt: skip
SETTINGS_BY_NAME = {setting.name: setting for setting in SETTINGS}

_BOOLEAN_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_PARSERS: dict[type, Callable[[str], str | int]] = {
    str: str,
    int: int,
    bool: lambda text: _BOOLEAN_WORDS[text.lower()],
    Path: str,
}


_LIKE = 0.7  # how much a mistaken name must be like a setting's


def find_setting(name: str, where: str = "") -> Setting:
    if name in SETTINGS_BY_NAME:
        return SETTINGS_BY_NAME[name]
    closest = closest_name(name, SETTINGS_BY_NAME, _LIKE)
    hint = f"did you mean {closest!r}?" if closest else f"there are: {', '.join(SETTINGS_BY_NAME)}"
    raise BadSetting(f"{where and where + ': '}there is no setting {name!r:.80}", remedy=hint)


def parse_value(setting: Setting, text: str, where: str) -> str | int:
    try:
        return _PARSERS[setting.type](text.strip())
    except (ValueError, KeyError) as error:
        raise _bad_value(setting, text, where) from error


def validate_value(setting: Setting, value: object, where: str) -> SettingValue:
    value = setting.current(value)
    expected_type = (str, Path) if setting.type is Path else setting.type
    is_right_type = isinstance(value, expected_type) and (
        setting.type is bool or not isinstance(value, bool)
    )
    if not is_right_type or not _is_allowed(setting, value):
        raise _bad_value(setting, value, where)
    checked = cast("str | int | Path", value)
    return Path(str(value)) if setting.type is Path else checked


def _is_allowed(setting: Setting, value: object) -> bool:
    if setting.allowed:
        return (
            value in setting.allowed
            or is_provider_model(setting, value)
            or _is_plugin_model(setting, value)
        )
    if setting.limits:
        return isinstance(value, int) and setting.limits[0] <= value <= setting.limits[1]
    if setting.pattern:
        return setting.pattern.fullmatch(str(value)) is not None
    return setting.type is bool or (bool(text := str(value)) and text.isprintable())


def is_provider_model(setting: Setting, value: object) -> bool:
    provider, _, model = str(value).partition(":")
    return provider in setting.providers and bool(model.strip()) and model.isprintable()


def _is_plugin_model(setting: Setting, value: object) -> bool:
    name, colon, argument = str(value).partition(":")
    if not setting.plugins or not name or (colon and not argument.strip()):
        return False
    return str(value).isprintable() and name in plugins(setting.plugins)


def _bad_value(setting: Setting, value: object, where: str) -> BadSetting:
    display = str(value) if isinstance(value, Path) else value
    default = "" if setting.default is None else f", {json.dumps(setting.default)}"
    return BadSetting(
        f"{where} is {display!r:.80}, but must be {setting.expected}",
        remedy=f"use a valid value, or omit it to use the default{default}",
    )


USER_ONLY_SETTINGS = frozenset((
    "data_dir", "max_classification", "personal_numbers", "actor", "audit_reads",
    *(f"review_{name}" for name in REVIEWED), "allowed_roots", "notes_trust",
))  # fmt: skip
# The personal space, that of the desktop app, and those of other projects.
_PRIVATE_SPACE = lazy_pattern(r"personal|desktop|.*-[0-9a-f]{8}")


def load_settings(
    start: Path | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Load the settings that apply in the folder ``start`` (else the working directory).

    ``overrides`` are arguments; None among them means not given. Every source is checked,
    including overridden ones.
    """
    env = os.environ if env is None else env
    start = start or paths.working_folder()
    home, config = paths.home_folder(env), paths.config_folder(env)
    project = start and paths.find_project(start, home)
    theirs = ForeignConfig.from_environment(env, home, project)
    found: dict[str, tuple[SettingValue, Origin]] = {}
    for name, value, origin, folder in (
        *_from_file(config / "config.toml", "user file", config),
        *_from_project(project),
        *_from_environment(env, start),
        *_from_arguments(overrides or {}, start),
    ):
        found[name] = (_resolve_path(value, folder), origin)
    profile = str(found["profile"][0]) if "profile" in found else Settings().profile
    for name, (value, origin) in _from_foreign_config(theirs.changes(profile), start).items():
        if (
            name not in found
            or _SOURCE_PRIORITY[origin.kind] > _SOURCE_PRIORITY[found[name][1].kind]
        ):
            found[name] = (value, origin)
    values: Json = {name: value for name, (value, _) in found.items()}
    return Settings(
        **values,
        project=project,
        config=config,
        theirs=theirs,
        origins={name: origin for name, (_, origin) in found.items()},
    )


# A name, its checked value, where it came from, and what a relative path is relative to.
_SettingValues = Iterator[tuple[str, SettingValue, Origin, Path | None]]


# Which source wins between a setting of another system and one of ours; equal: ours.
_SOURCE_PRIORITY = {"user file": 0, "project file": 1, "environment": 2, "argument": 3}


def _from_foreign_config(
    changes: tuple[Change, ...], folder: Path | None
) -> dict[str, tuple[SettingValue, Origin]]:
    found: dict[str, tuple[SettingValue, Origin]] = {}
    for verb, name, value, where, kind in changes:
        if verb != "setting":
            continue
        checked = validate_value(SETTINGS_BY_NAME[name], value, where)
        if kind == "project file":
            refuse_in_project(name, checked, where)
        found[name] = (_resolve_path(checked, folder), Origin(kind, where))
    return found


def _from_file(
    path: Path, kind: Literal["user file", "project file"], folder: Path
) -> _SettingValues:
    if not paths.is_file(path):
        return
    origin = Origin(kind, str(path))
    for name, value in read_table(path).items():
        yield (
            name,
            validate_value(find_setting(name, str(path)), value, f"{path}: {name}"),
            origin,
            folder,
        )


def _from_project(root: Path | None) -> _SettingValues:
    if root is None or (path := _project_file(root)) is None:
        return
    for found in _from_file(path, "project file", root):
        refuse_in_project(found[0], found[1], str(path))
        _refuse_notes_outside(found[0], found[1], root, str(path))
        yield found


def refuse_in_project(name: str, value: object, where: str) -> None:
    """Refuse a setting that a project file must not make.

    A project may come from strangers: it must not decide about the user's own memory, nor
    choose the server or model folder its texts are sent to.
    """
    setting = find_setting(name)
    sends_data = bool(setting.plugins) and value not in setting.allowed
    is_private_space = name == "space" and _PRIVATE_SPACE.fullmatch(str(value))
    if name in USER_ONLY_SETTINGS or is_private_space or sends_data:
        raise BadSetting(
            f"{where}: a project cannot set {name} = {str(value)!r:.80}",
            remedy="set it for yourself: bethink config set",
        )


def _refuse_notes_outside(name: str, value: object, root: Path, where: str) -> None:
    """Refuse a project's ``notes_dir`` outside the project, symbolic links resolved."""
    if name != "notes_dir" or value is None:
        return
    target, inside = os.path.realpath(root / Path(str(value)).expanduser()), os.path.realpath(root)
    if not Path(target).is_relative_to(inside):
        raise BadSetting(
            f"{where}: a project's notes_dir must be inside the project, not in {str(value)!r:.80}",
            remedy="set it for yourself: bethink config set",
        )


def _from_environment(env: Mapping[str, str], folder: Path | None) -> _SettingValues:
    for variable in sorted(name for name in env if name.startswith(ENV_PREFIX)):
        name = variable.removeprefix(ENV_PREFIX).lower()
        if name in SETTINGS_BY_NAME and env[variable]:
            setting = SETTINGS_BY_NAME[name]
            value = validate_value(setting, parse_value(setting, env[variable], variable), variable)
            yield name, value, Origin("environment", variable), folder
        elif (
            name not in SETTINGS_BY_NAME
            and variable != paths.CONFIG_VARIABLE
            and (closest := closest_name(name, SETTINGS_BY_NAME, _LIKE))
        ):
            # Other tools may have such variables; only a probable typo is refused.
            raise BadSetting(
                f"there is no setting {variable}",
                remedy=f"did you mean {SETTINGS_BY_NAME[closest].variable}?",
            )


def _from_arguments(overrides: Mapping[str, object], folder: Path | None) -> _SettingValues:
    for name, value in overrides.items():
        if value is not None:
            setting = find_setting(name)
            yield (
                name,
                validate_value(setting, value, f"argument {name}"),
                Origin("argument"),
                folder,
            )


def set_user_setting(name: str, value: SettingValue, env: Mapping[str, str] | None = None) -> Path:
    """Write one setting to the user's file (None removes it) and return the file."""
    path = paths.config_folder(os.environ if env is None else env) / "config.toml"
    cwd = paths.working_folder()
    if value is not None and find_setting(name).type is Path and cwd is not None:
        # A relative path is relative to the working directory, not to the file's folder.
        value = cwd / Path(str(value)).expanduser()
    return _write_setting(path, name, value, keep_mode=False)


def set_project_setting(
    name: str, value: SettingValue, start: Path | None = None, env: Mapping[str, str] | None = None
) -> Path:
    """Write one setting to the file of the project that ``start`` belongs to."""
    start = start or paths.working_folder()
    home = paths.home_folder(os.environ if env is None else env)
    root = start and paths.find_project(start, home)
    if root is None:
        raise BadSetting("this folder is not in a project", remedy="create one: mkdir .bethink")
    path = _project_file(root) or root / paths.PROJECT_FOLDER / "config.toml"
    refuse_in_project(find_setting(name).name, value, str(path))
    _refuse_notes_outside(name, value, root, str(path))
    return _write_setting(path, name, value, keep_mode=True)


def _write_setting(path: Path, name: str, value: SettingValue, *, keep_mode: bool) -> Path:
    setting = find_setting(name)
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str):
        value = parse_value(setting, value, name)
    if value is not None:
        validate_value(setting, value, name)
    write_key(path, name, value, keep_mode=keep_mode)
    return path


def _project_file(root: Path) -> Path | None:
    files = paths.project_files(root)
    if len(files) > 1:
        raise BadSetting(f"both {files[0]} and {files[1]} exist", remedy="keep one of them")
    return files[0] if files else None


def _resolve_path(value: SettingValue, folder: Path | None) -> SettingValue:
    if not isinstance(value, Path):
        return value
    path = value.expanduser()
    return path if folder is None else folder / path


def read_table(path: Path) -> dict[str, object]:
    """Read a TOML file; raise BadSetting with the position if it is not TOML."""
    return _parse_toml(read_small_text(path, BadSetting), path)


def write_key(path: Path, key: str, value: str | int | bool | None, *, keep_mode: bool) -> None:
    """Set ``key`` of a TOML file, or remove it where ``value`` is None.

    Comments, order, spaces and line ends stay. The file is replaced atomically. Its mode is
    0600, unless ``keep_mode`` is set and the file existed before.
    """
    # The target of a link is changed, and the link kept.
    real = Path(os.path.realpath(path))
    old = read_small_text(real, BadSetting) if real.exists() else ""
    parsed = _parse_toml(old, path)
    expected = {name: kept_value for name, kept_value in parsed.items() if name != key}
    if value is not None:
        expected[key] = value
    new = _with_key_set(old, key, value)
    # A table or a list of that name is no setting.
    is_nested = isinstance(parsed.get(key), dict | list)
    if is_nested or new is None or _parse_toml(new, path) != expected:
        raise BadSetting(f"{path}: {key} cannot be changed safely", remedy="edit the file by hand")
    mode = real.stat().st_mode & 0o777 if keep_mode and real.exists() else 0o600
    try:
        paths.make_private_folder(real.parent)
        atomic_replace(real, new.encode(), mode=mode)
    except OSError as error:
        raise BadSetting(f"{real} cannot be written: {error.strerror}") from error


def _parse_toml(text: str, path: Path) -> dict[str, object]:
    from bethink.core.toml import parse_toml  # start-up time: most have no file

    try:
        return parse_toml(text)
    except ValueError as error:
        raise BadSetting(f"{path}: not valid TOML: {error}") from error


def _with_key_set(text: str, key: str, value: str | int | bool | None) -> str | None:
    """Return the text with the key set or removed; None where it cannot be edited."""
    import tomlkit  # start-up time: only needed to write
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        if value is None:
            document.pop(key, None)
        elif key in document:
            document[key] = value
        else:
            item = tomlkit.item(value)
            item.trivia.trail = "\r\n" if "\r\n" in text else "\n"
            document.append(key, item)
        return tomlkit.dumps(document)
    except (TOMLKitError, RecursionError):
        return None
