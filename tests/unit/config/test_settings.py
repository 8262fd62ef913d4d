"""Settings: where values come from, what is refused, and how they are written."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from bethink.config import settings as settings_module
from bethink.config.changes import Change
from bethink.config.settings import (
    SETTINGS,
    Origin,
    Settings,
    load_settings,
    set_project_setting,
    set_user_setting,
)
from bethink.errors import BadSetting
from bethink.retrieval.query_builder import MAX_K, MAX_TOKENS
from rows import each_row

NAMES = [setting.name for setting in SETTINGS]


class Desk:
    """A user with a home, a settings folder and a project, all in one temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.home = Path(os.path.realpath(folder)) / "home"
        self.project = self.home / "app"
        self.inside = self.project / "src"
        self.user_file = self.home / "settings" / "config.toml"
        self.project_file = self.project / ".bethink" / "config.toml"
        self.env = {
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "BETHINK_CONFIG_DIR": str(self.user_file.parent),
        }
        for path in (self.inside, self.user_file.parent, self.project_file.parent):
            path.mkdir(parents=True)

    def load(self, start: Path | None = None, env=(), **overrides) -> Settings:
        return load_settings(start or self.inside, {**self.env, **dict(env)}, overrides)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_without_any_source_the_defaults_hold(desk):
    """Nothing set: what the documentation says, and it says so."""
    settings = desk.load()

    assert {name: getattr(settings, name) for name in NAMES} == {
        "space": None, "data_dir": None, "store": "sqlite", "embedder": "encoder", "reranker": "none",
        "llm": "none",
        "profile": "default", "k": 40,
        "max_tokens": 2000, "track": False, "cache": False, "max_classification": 2, "personal_numbers": "captured",
            "allowed_roots": None,
        "notes_dir": None, "notes_trust": 1, "color": "auto",
        "actor": "user", "worker": "auto", "worker_idle": 600, "maintain_in_background": False,
        "sync_in_background": False,
        "maintain_every": 1440, "duplicate_similarity": "words", "prompt_unsure": False,
        "unasked": "failure,touch,edit,contradiction", "ab_test": False, "feedback": False,
        "review_agent": "accept", "review_tool": "wait", "review_web": "wait",
        "review_import": "accept", "audit_reads": False,
    }  # fmt: skip
    assert {settings.origin(name) for name in NAMES} == {Origin("default")}
    assert settings.project == desk.project


SOURCES = ("user file", "project file", "environment", "argument")


@each_row(
    "present",
    [chosen for size in range(5) for chosen in itertools.combinations(SOURCES, size)],
    ids=lambda chosen: "+".join(chosen) or "none",
)
def test_the_strongest_source_wins(desk, present):
    """argument > environment > project file > user file > default, in every combination."""
    if "user file" in present:
        desk.user_file.write_text("k = 1\n")
    if "project file" in present:
        desk.project_file.write_text("k = 2\n")
    env = {"BETHINK_K": "3"} if "environment" in present else {}
    overrides = {"k": 4} if "argument" in present else {}

    settings = desk.load(env=env, **overrides)

    value, kind = max(
        ((number, name) for number, name in enumerate(SOURCES, 1) if name in present),
        default=(40, "default"),
    )
    assert (settings.k, settings.origin("k").kind) == (value, kind)


def test_each_value_remembers_its_own_source(desk):
    """Names, files and variables, in words fit for showing."""
    desk.user_file.write_text('actor = "anna"\nk = 7\n')
    desk.project_file.write_text('space = "shared"\n')

    settings = desk.load(env={"BETHINK_TRACK": "yes"}, profile="siftcoder")

    assert {name: str(settings.origin(name)) for name in ("actor", "space", "track", "profile", "color")} == {
        "actor": f"user file {desk.user_file}",
        "space": f"project file {desk.project_file}",
        "track": "environment BETHINK_TRACK",
        "profile": "argument",
        "color": "default",
    }  # fmt: skip


def test_given_tells_a_choice_from_a_default(desk):
    """A profile may have its own k; only a k that somebody set overrules it."""
    assert desk.load().explicit("k") is None
    assert desk.load(k=10).explicit("k") == 10
    assert desk.load(track=False).explicit("track") is False


def test_an_argument_of_none_was_not_given(desk):
    """A command line passes what it has."""
    assert desk.load(env={"BETHINK_K": "3"}, k=None).k == 3


def test_an_empty_variable_is_not_set(desk):
    """The shell's way to unset for one command."""
    settings = desk.load(env={"BETHINK_SPACE": "", "BETHINK_K": ""})

    assert (settings.space, settings.k) == (None, 40)


@each_row(
    ("name", "text", "value"),
    [
        ("k", " 25 ", 25),
        ("track", "TRUE", True), ("track", "on", True), ("track", "1", True), ("track", "no", False),
        ("track", "0", False), ("track", "Off", False),
        ("space", "work.notes_2-x", "work.notes_2-x"),
        ("embedder", "none", "none"),
        ("max_classification", "0", 0),
        ("actor", "Grüße an alle", "Grüße an alle"),
    ],
)  # fmt: skip
def test_variables_are_read_by_their_type(desk, name, text, value):
    """Numbers, yes and no, names, text."""
    found = getattr(desk.load(env={f"BETHINK_{name.upper()}": text}), name)

    assert found == value
    assert type(found) is type(value)


BAD = [
    ("k", "0"), ("k", "-1"), ("k", "201"), ("k", "many"), ("k", "1.5"),
    ("max_tokens", "0"), ("max_tokens", "1000001"),
    ("track", "maybe"),
    ("max_classification", "4"), ("max_classification", "-1"),
    ("embedder", "word2vec"), ("embedder", "Hash"),
    ("color", "pink"),
    ("space", "Upper"), ("space", "../etc"), ("space", "a/b"), ("space", ".hidden"),
    ("space", "x" * 65), ("space", "a b"), ("space", "ü"),
    ("actor", "two\nlines"), ("profile", "\x1b[31m"), ("data_dir", "/a\x07b"),
]  # fmt: skip


@each_row(("name", "text"), BAD)
def test_a_bad_variable_is_named(desk, name, text):
    """The variable, the value and what it must be."""
    setting = next(setting for setting in SETTINGS if setting.name == name)

    with pytest.raises(BadSetting) as caught:
        desk.load(env={setting.variable: text})

    shown = text if text.lstrip("-").isdigit() else repr(text)
    assert caught.value.message == f"{setting.variable} is {shown}, but must be {setting.expected}"


@each_row(("name", "value"), [*BAD, ("space", "a\n"), ("k", True), ("track", 1)])
def test_a_bad_argument_is_named(desk, name, value):
    """The same rules for arguments, which are taken by their type."""
    with pytest.raises(BadSetting, match=f"argument {name} is"):
        desk.load(**{name: value})


@each_row(
    "line",
    [
        'k = "10"', "k = 10.0", "k = true", "k = [10]", "k = 0", "k = 2026-01-01",
        "track = 1", 'track = "yes"', "space = 5", "data_dir = 1", "actor = true", 'actor = ""',
        "max_classification = true", 'embedder = ["hash"]', "color = {a = 1}", "profile = 1",
    ],
)  # fmt: skip
@each_row("which", ["user", "project"])
def test_a_bad_value_in_a_file_is_named(desk, which, line):
    """File, key, value and what it must be; TOML's types are taken at their word."""
    path = desk.user_file if which == "user" else desk.project_file
    path.write_text(line + "\n")
    name = line.split()[0]

    with pytest.raises(BadSetting) as caught:
        desk.load()

    assert caught.value.message.startswith(f"{path}: {name} is ")
    assert "must be" in caught.value.message
    assert caught.value.remedy


def test_a_refusal_says_what_would_hold_without_it(desk):
    """The remedy names the default."""
    for name, text, default in [
        ("k", "x", ", 40"),
        ("space", "/", ""),
        ("color", "x", ', "auto"'),
    ]:
        with pytest.raises(BadSetting) as caught:
            desk.load(env={f"BETHINK_{name.upper()}": text})
        assert caught.value.remedy == f"use a valid value, or omit it to use the default{default}"


def test_an_overruled_mistake_is_still_a_mistake(desk):
    """A wrong file is found when it is read, not on the day the variable is gone."""
    desk.user_file.write_text("k = 0\n")

    with pytest.raises(BadSetting):
        desk.load(k=5)


def test_an_unknown_key_is_refused_with_a_guess(desk):
    """By file and name; the near one is offered, else all there are."""
    desk.project_file.write_text('embeder = "hash"\n')
    with pytest.raises(BadSetting, match="no setting 'embeder'") as caught:
        desk.load()
    assert str(desk.project_file) in caught.value.message
    assert caught.value.remedy == "did you mean 'embedder'?"

    desk.project_file.write_text("[colours]\nx = 1\nzzz = 2\n")
    with pytest.raises(BadSetting, match="colours"):
        desk.load()

    desk.project_file.write_text("zzz = 2\n")
    with pytest.raises(BadSetting) as caught:
        desk.load()
    assert all(name in caught.value.remedy for name in NAMES)


def test_an_unknown_argument_is_refused(desk):
    """A slip in the code is named too."""
    with pytest.raises(BadSetting, match="'kk'"):
        desk.load(kk=3)
    with pytest.raises(BadSetting, match="'kk'"):
        desk.load().origin("kk")


def test_a_misspelled_variable_is_refused(desk):
    """BETHINK_SPCAE must not quietly use another space; foreign variables are let be."""
    with pytest.raises(BadSetting, match="BETHINK_SPCAE") as caught:
        desk.load(env={"BETHINK_SPCAE": "work"})
    assert caught.value.remedy == "did you mean BETHINK_SPACE?"

    assert desk.load(env={"BETHINK_SERVER_TOKEN": "x", "BETHINK": "y", "SPACE": "z"}).space is None


def test_a_file_that_is_no_toml_is_named(desk):
    """With the line."""
    desk.user_file.write_text("k = 5\nk = \n")

    with pytest.raises(BadSetting, match="line 2") as caught:
        desk.load()

    assert str(desk.user_file) in caught.value.message


def test_two_project_files_are_one_too_many(desk):
    """Neither is quietly ignored."""
    desk.project_file.write_text("k = 5\n")
    (desk.project / "bethink.toml").write_text("k = 6\n")

    with pytest.raises(BadSetting, match="both") as caught:
        desk.load()

    assert caught.value.remedy == "keep one of them"


def test_bethink_toml_is_a_project_file_too(desk):
    """For those who like their settings visible."""
    (desk.project / "bethink.toml").write_text("k = 6\n")

    settings = desk.load()

    assert settings.k == 6
    assert settings.origin("k") == Origin("project file", str(desk.project / "bethink.toml"))


def test_outside_a_project_there_is_no_project_file(desk):
    """The home folder's own files do not count as a project's."""
    (desk.home / "bethink.toml").write_text("k = 6\n")
    (desk.home / "notes").mkdir()

    settings = desk.load(start=desk.home / "notes")

    assert (settings.k, settings.project) == (40, None)


@pytest.mark.parametrize(
    ("source", "base"), [("user", "settings"), ("environment", "app/src"), ("argument", "app/src")]
)  # fmt: skip
def test_a_relative_folder_is_relative_to_its_source(desk, source, base):
    """The file's to its place, others to the working directory."""
    env, overrides = {}, {}
    if source == "user":
        desk.user_file.write_text('data_dir = "memories"\n')
    elif source == "environment":
        env = {"BETHINK_DATA_DIR": "memories"}
    else:
        overrides = {"data_dir": Path("memories")}

    assert desk.load(env=env, **overrides).data_dir == desk.home / base / "memories"


def test_a_folder_may_be_absolute_or_begin_at_home(desk, tmp_path, monkeypatch):
    """~ is the user's home."""
    monkeypatch.setenv("HOME", str(desk.home))
    monkeypatch.setenv("USERPROFILE", str(desk.home))

    assert desk.load(data_dir=str(tmp_path / "x")).data_dir == tmp_path / "x"
    assert desk.load(env={"BETHINK_DATA_DIR": "~/x"}).data_dir == desk.home / "x"


def test_profiles_of_ones_own_are_looked_for_in_two_places(desk):
    """The user's, then the project's; plain settings know of neither."""
    assert desk.load().profile_folders() == (
        desk.user_file.parent / "profiles",
        desk.project / ".bethink" / "profiles",
    )
    assert desk.load(start=desk.home).profile_folders() == (desk.user_file.parent / "profiles",)
    assert Settings().profile_folders() == ()


def test_the_table_and_the_settings_agree():
    """Every row is a field with that type; help and variable are there for the docs."""
    settable = {field.name for field in fields(Settings)} - {
        "project",
        "config",
        "theirs",
        "origins",
    }

    assert set(NAMES) == settable
    for setting in SETTINGS:
        assert setting.help
        assert setting.expected
        assert setting.variable == "BETHINK_" + setting.name.upper()
        assert setting.default is None or isinstance(setting.default, setting.type)


def test_limits_are_those_of_a_recall():
    """What may be set is what may be asked."""
    limits = {setting.name: setting.limits for setting in SETTINGS if setting.limits}

    assert limits["k"] == (1, MAX_K)
    assert limits["max_tokens"] == (1, MAX_TOKENS)


def test_settings_cannot_be_changed(desk):
    """Frozen, so they can be shared."""
    with pytest.raises(AttributeError):
        desk.load().k = 3


def test_a_user_setting_is_written_and_read_back(desk):
    """Text from a command line or a value; other lines stay."""
    desk.user_file.write_text("# mine\nk = 3  # few\n")

    assert set_user_setting("k", "12", desk.env) == desk.user_file
    set_user_setting("track", value=True, env=desk.env)
    set_user_setting("data_dir", Path("/srv/memories"), desk.env)

    settings = desk.load()
    assert (settings.k, settings.track, settings.data_dir) == (12, True, Path("/srv/memories"))
    assert desk.user_file.read_text().startswith("# mine\nk = 12  # few\n")


def test_a_relative_folder_is_written_as_it_is_meant(desk, monkeypatch):
    """From the working directory, not from the folder of the file."""
    monkeypatch.chdir(desk.inside)

    set_user_setting("data_dir", "memories", desk.env)

    assert desk.load().data_dir == desk.inside / "memories"


@each_row(
    ("name", "value"),
    [
        ("data_dir", "/elsewhere"),
        ("max_classification", 3),
        ("actor", "me"),
        ("space", "personal"),
        ("space", "desktop"),
        ("space", "app-32ff3df3"),
    ],
)
def test_a_project_does_not_decide_over_the_users_memory(desk, name, value):
    """A repository may come from strangers: neither its file nor `--project` may set these."""
    with pytest.raises(BadSetting) as written:
        set_project_setting(name, value, desk.inside, desk.env)
    desk.project_file.write_text(f"{name} = {value!r}\n")
    with pytest.raises(BadSetting) as read:
        desk.load()

    assert name in written.value.message
    assert name in read.value.message


@each_row("value", ["sentence-transformers:~/models/x", "ollama:nomic-embed-text:v1.5", "openai:m"])
def test_an_embedder_may_be_a_providers_model(desk, value):
    """Set by the user, in the file and in the environment."""
    set_user_setting("embedder", value, desk.env)

    assert desk.load().embedder == value
    assert desk.load(env={"BETHINK_EMBEDDER": value}).embedder == value


@each_row(
    ("former", "now"),
    [
        ("words", "encoder"),
        ("transformer", "encoder"),
        ("transformer:~/models/x", "sentence-transformers:~/models/x"),
    ],
)
def test_an_embedder_of_an_older_version_is_one_of_this(desk, former, now):
    """A file that named it goes on working; a model of the user's own stays that model."""
    assert desk.load(env={"BETHINK_EMBEDDER": former}).embedder == now


@each_row("value", ["nobody:model", "ollama:", "ollama: ", "hash:x", "ollama:a\tb"])
def test_a_model_of_nobody_is_refused(desk, value):
    """The error names embedders and providers."""
    with pytest.raises(BadSetting, match="one of encoder") as caught:
        set_user_setting("embedder", value, desk.env)

    assert "ollama, openai as PROVIDER:MODEL" in caught.value.message


@pytest.mark.parametrize(
    "value",
    [
        "openai:text-embedding-3-small", "sentence-transformers:./weights", "transformer:./weights",
    ],
)  # fmt: skip
def test_a_project_does_not_send_texts_anywhere(desk, value):
    """Nor does it bring its own model; an embedder by its plain name it may choose."""
    with pytest.raises(BadSetting, match="a project cannot set embedder"):
        set_project_setting("embedder", value, desk.inside, desk.env)
    desk.project_file.write_text(f"embedder = {value!r}\n")
    with pytest.raises(BadSetting, match="a project cannot set embedder"):
        desk.load()

    desk.project_file.write_text('embedder = "hash"\n')
    assert desk.load().embedder == "hash"


def test_a_setting_can_be_taken_out_again(desk):
    """None removes it and the default holds."""
    set_user_setting("k", 12, desk.env)
    set_user_setting("k", None, desk.env)

    assert desk.load().origin("k") == Origin("default")


def test_a_project_setting_goes_to_the_projects_file(desk):
    """To the one that is there, else to .bethink/config.toml."""
    assert set_project_setting("space", "shared", desk.inside, desk.env) == desk.project_file
    assert desk.load().space == "shared"

    desk.project_file.unlink()
    visible = desk.project / "bethink.toml"
    visible.write_text("")

    assert set_project_setting("k", "4", desk.inside, desk.env) == visible
    assert desk.load().k == 4


def test_there_is_no_project_to_write_to(desk):
    """Outside of one the error says how to make one."""
    with pytest.raises(BadSetting, match="not in a project") as caught:
        set_project_setting("k", 4, desk.home, desk.env)

    assert ".bethink" in caught.value.remedy


@each_row(("name", "text"), BAD)
def test_a_bad_value_is_never_written(desk, name, text):
    """Checked before the file is touched."""
    with pytest.raises(BadSetting):
        set_user_setting(name, text, desk.env)

    assert not desk.user_file.exists()


def test_an_unknown_setting_is_never_written(desk):
    """With a guess at what was meant."""
    with pytest.raises(BadSetting) as caught:
        set_user_setting("spaces", "x", desk.env)

    assert caught.value.remedy == "did you mean 'space'?"


def test_without_arguments_the_process_is_asked(desk, tmp_path):
    """The working directory and the environment are the sources; a removed folder is none."""
    code = (
        "import os\n"
        "from bethink.config.settings import load_settings, set_user_setting, set_project_setting\n"
        "set_user_setting('k', 5); set_project_setting('profile', 'bob')\n"
        "s = load_settings(); print(s.k, s.profile, s.track, s.project)\n"
        "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        "print(load_settings().project)"
    )
    env = {**os.environ, **desk.env, "BETHINK_TRACK": "1"}

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=desk.inside, env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip

    assert done.stdout.splitlines()[0] == f"5 bob True {desk.project}", done.stderr
    assert done.stdout.splitlines()[1] == "None"


def test_loading_is_cheap(desk):
    """Without a file neither TOML, guesses, platform folders nor inspection are imported."""
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from bethink.config.settings import load_settings\n"
        "load_settings()\n"
        "heavy = {'tomllib', 'difflib', 'inspect', 'numpy', 'platformdirs', 'tempfile'}\n"
        "print(sorted(heavy & set(sys.modules) - before))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=desk.inside, env={**os.environ, **desk.env},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(("name", "value"), [("data_dir", "/tmp/x"), ("embedder", "ollama:x")])
def test_another_tools_file_in_a_project_is_as_strange_as_ours(name: str, value: str) -> None:
    """What a project's file must not set, none of another system's name may set either."""
    change = Change("setting", name, value, ".other/config.json", "project file")
    with pytest.raises(BadSetting, match="a project cannot set"):
        settings_module._from_foreign_config((change,), None)
    assert settings_module._from_foreign_config((change._replace(source="user file"),), None)
