"""Parts by name: built in, of an installed plug-in, or a class that a profile names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink import Memory
from bethink.cli.errors import classify_error
from bethink.config.settings import load_settings, refuse_in_project
from bethink.core import registry
from bethink.core.registry import Registry
from bethink.errors import BadPlugin, BadProfile, BadSetting, NotFound
from bethink.models import EMBEDDERS, open_embedder
from bethink.models.embed.hashing import HashEmbedder
from bethink.retrieval.profile import load_profile, parse_profile
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.retrievers.lexical import Lexical
from bethink.retrieval.stages import STAGES
from bethink.server.tools.calls import log_bug
from bethink.store import STORES
from importing import import_from
from rows import each_row

PARTS = """
from __future__ import annotations
from dataclasses import dataclass
from bethink.importers.entry import Entry, LinkEnd
from bethink.model import Draft, Pool
from bethink.models import Provider
from bethink.models.embed.hashing import HashEmbedder
from bethink.retrieval.context import AnswerExtras, Context
from bethink.retrieval.retrievers.temporal import Newest
from bethink.store.sqlite import SqliteStore


@dataclass(frozen=True)
class Latest(Newest):
    name: str = "latest"
    needed: int = 1


@dataclass(frozen=True)
class Half:
    name: str = "half"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return pool[: len(pool) // 2]


@dataclass(frozen=True)
class Warn:
    name: str = "warn"

    def __call__(self, hits: Pool, ctx: Context) -> AnswerExtras:
        return AnswerExtras(warnings=("be careful",))


class Plain:
    name = "plain"

    def __call__(self, pool, ctx):
        return pool


@dataclass
class Thawed:
    name: str = "thawed"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return pool


@dataclass(frozen=True)
class Mute:
    name: str = "mute"


@dataclass(frozen=True)
class Nameless:
    depth: int = 3

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return pool


@dataclass(frozen=True)
class Unreadable:
    name: Missing = "unreadable"

    def __call__(self, pool, ctx):
        return pool


@dataclass(frozen=True)
class Demanding(Half):
    name: str = "demanding"
    share: float = 0.5

    def __post_init__(self) -> None:
        if self.share == 0:
            raise ValueError("share must not be zero")


@dataclass(frozen=True)
class Failing:
    name: str = "failing"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return {}["key"]


class Own(HashEmbedder):
    def embed_query(self, text):
        if text == "fail":
            raise KeyError(text)
        return super().embed_query(text)


def sized(size: str) -> HashEmbedder:
    made = Own()
    made.size = int(size)
    return made


SLOW = Provider(Own, slow_to_load=True)


class Lines:
    def __init__(self, path, progress):
        self.path = path

    def entries(self):
        for number, line in enumerate(self.path.read_text().splitlines()):
            yield Entry(f"line {number}", Draft(line))

    def links(self):
        return iter(())
"""
ENTRIES = """
[bethink.retrievers]
latest = plugged_parts:Latest
lexical = plugged_parts:Latest
broken = plugged_parts:Absent
[bethink.stages]
half = plugged_parts:Half
failing = plugged_parts:Failing
plain = plugged_parts:Plain
[bethink.embedders]
own = plugged_parts:Own
sized = plugged_parts:sized
slow = plugged_parts:SLOW
[bethink.importers]
our-lines = plugged_parts:Lines
[bethink.stores]
other = plugged_parts:SqliteStore
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path with one distribution, as an installer would leave it."""
    site = tmp_path / "site"
    about = site / "plugged-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "plugged_parts.py").write_text(PARTS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(site))
    tables = (RETRIEVERS, STAGES, EMBEDDERS, STORES)
    for table in tables:
        monkeypatch.setattr(table, "_loaded", {})
    registry.plugins.cache_clear()
    yield site
    registry.plugins.cache_clear()
    sys.modules.pop("plugged_parts", None)


def profile(lines: str) -> str:
    return f"[[channels]]\nuse = 'lexical'\n{lines}\n"


def test_a_plugin_is_used_by_its_name(installed: Path) -> None:
    """In a project's profile as well: what is installed was installed by the user."""
    made = parse_profile(
        "[[channels]]\nuse = 'latest'\ndepth = 3\n[[gate]]\nuse = 'half'", "mine", "mine.toml"
    )

    assert [(one.name, one.depth) for one in made.channels] == [("latest", 3)]
    assert made.gate[0].name == "half"
    assert RETRIEVERS.name_of(type(made.channels[0])) == "latest"
    assert {"latest", "broken"} <= set(RETRIEVERS)
    assert len(RETRIEVERS) == len(list(RETRIEVERS))


def test_a_plugin_cannot_replace_a_built_in_part(installed: Path) -> None:
    """The built-in part is used, and one sentence says so."""
    assert RETRIEVERS["lexical"] is Lexical
    assert list(RETRIEVERS).count("lexical") == 1
    assert RETRIEVERS.shadowed() == [
        (
            "the plug-in plugged provides a retriever 'lexical', which is built in; "
            "the built-in one is used"
        )
    ]


def test_a_broken_plugin_is_one_sentence_with_its_distribution(installed: Path) -> None:
    """Not a traceback from inside."""
    with pytest.raises(BadPlugin, match="the retriever 'broken' of the plug-in plugged") as caught:
        RETRIEVERS["broken"]

    assert "\n" not in caught.value.message
    assert caught.value.remedy == "update or uninstall plugged"


def test_built_in_names_never_read_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the metadata of all distributions takes longer than a recall."""

    def forbidden(group: str) -> None:
        raise AssertionError(group)

    monkeypatch.setattr(registry, "plugins", forbidden)

    assert load_profile("default").channels
    assert open_embedder("hash") is not None
    assert RETRIEVERS["lexical"] is Lexical
    assert RETRIEVERS.name_of(Lexical) == "lexical"
    assert "lexical" in RETRIEVERS
    assert STAGES.name_of(Lexical) is None
    with Memory.open(":memory:", embedder="hash") as memory:
        memory.remember("Releases are cut on Tuesdays")
        assert memory.recall("when are releases cut?").hits


def test_a_registry_holds_objects_and_locations() -> None:
    """A location is imported on first use; without a group there are no plug-ins."""
    table: Registry[object] = Registry("thing", {"one": 1, "path": "pathlib:Path"})

    assert table["one"] == 1
    assert table["path"] is Path
    assert table.builtin == tuple(table) == ("one", "path")
    assert table.installed == ()
    assert table.name_of(Path) == "path"
    assert "two" not in table
    with pytest.raises(KeyError):
        table["two"]


def test_an_embedder_of_a_plugin_is_opened_like_any_other(installed: Path, tmp_path: Path) -> None:
    """By its name, with an argument where it takes one, by a setting of the user."""
    assert isinstance(open_embedder("own"), HashEmbedder)
    sized = open_embedder("sized:64")
    assert sized is not None
    assert sized.size == 64  # type: ignore[attr-defined]
    assert EMBEDDERS["slow"].slow_to_load
    for name in ("sized", "own:", "unknown", "unknown:3"):
        with pytest.raises(BadSetting, match="there is no embedder") as caught:
            open_embedder(name)
    assert caught.value.remedy.endswith("openai:MODEL, own, sized, slow")

    env = {"HOME": str(tmp_path), "BETHINK_CONFIG_DIR": str(tmp_path), "BETHINK_EMBEDDER": "own"}
    assert load_settings(tmp_path, env).embedder == "own"
    assert load_settings(tmp_path, env | {"BETHINK_EMBEDDER": "sized:64"}).embedder == "sized:64"
    with pytest.raises(BadSetting):
        load_settings(tmp_path, env | {"BETHINK_EMBEDDER": "unknown"})


def test_a_project_does_not_choose_a_model_of_a_plugin(installed: Path) -> None:
    """It may send texts elsewhere, which only the user decides."""
    for name in ("own", "sized:64"):
        with pytest.raises(BadSetting, match="a project cannot set embedder"):
            refuse_in_project("embedder", name, "bethink.toml")
    refuse_in_project("embedder", "hash", "bethink.toml")


def test_an_importer_of_a_plugin_is_run(installed: Path, tmp_path: Path, memory: Memory) -> None:
    """By its name; an unknown one is still refused."""
    (tmp_path / "notes").write_text("The first note\nThe second note\n")

    tally = import_from(memory, tmp_path / "notes", "our-lines")

    assert tally.stored == 2
    assert tally.kind == "our-lines"


def test_a_store_of_a_plugin_is_opened(installed: Path) -> None:
    """By its name; an unknown one is refused with those there are."""
    with Memory.open(":memory:", embedder="hash", store="other") as memory:
        memory.remember("Releases are cut on Tuesdays")
    with pytest.raises(NotFound, match="there is no store 'absent'") as caught:
        Memory.open(":memory:", store="absent")
    assert caught.value.remedy == "one of sqlite, other, or postgresql://..."


def test_a_profile_of_the_user_may_name_a_class(installed: Path, tmp_path: Path) -> None:
    """Of every kind of part; its fields are settings like any others."""
    own = tmp_path / "profiles"
    own.mkdir()
    (own / "mine.toml").write_text(
        "[[channels]]\nuse = 'plugged_parts:Latest'\nneeded = 2\n"
        "[[gate]]\nuse = 'plugged_parts:Half'\n[[assemble]]\nuse = 'plugged_parts:Warn'\n"
        "[fuse]\nuse = 'bethink.retrieval.stages.fusion:WeightedSum'\n"
    )

    made = load_profile("mine", [own], trusted=own)

    assert made.channels[0].needed == 2  # type: ignore[attr-defined]
    assert made.assemble[0].name == "warn"
    with Memory.open(":memory:", embedder="hash") as memory:
        for number in range(4):
            memory.remember(f"Note number {number} about releases")
        answer = memory.recall("releases", profile=made)
    assert len(answer.hits) == 2
    assert "be careful" in answer.warnings


@pytest.mark.parametrize("trusted", [None, "elsewhere"])
def test_a_profile_of_a_project_imports_nothing(
    installed: Path, tmp_path: Path, trusted: str | None
) -> None:
    """A cloned repository must not run its code because a memory is asked."""
    folder = tmp_path / "app" / ".bethink" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text("[[channels]]\nuse = 'plugged_parts:Latest'\n")

    with pytest.raises(BadProfile, match="only a profile in your own folder") as caught:
        load_profile("mine", [folder], trusted=trusted and tmp_path / trusted)

    assert f"{folder / 'mine.toml'}: channels[0].use" in caught.value.message
    assert "plug-in" in caught.value.remedy
    assert "plugged_parts" not in sys.modules


def test_the_command_line_runs_no_code_of_a_project(tmp_path: Path) -> None:
    """Neither by the setting `profile` of the project nor by name; the user's own runs."""
    project, config = tmp_path / "app", tmp_path / "config"
    mine = "[[channels]]\nuse = 'evil:Part'\n"
    for folder in (project / ".bethink", config):
        (folder / "profiles").mkdir(parents=True)
    (project / ".bethink" / "profiles" / "evil.toml").write_text(mine)
    (project / ".bethink" / "config.toml").write_text('profile = "evil"\n')
    (project / "evil.py").write_text("print('RUN'); raise ImportError('as planned')")
    (config / "profiles" / "good.toml").write_text(mine)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        env = {
            "HOME": str(tmp_path), "PATH": "", "PYTHONPATH": str(project),
            "BETHINK_CONFIG_DIR": str(config), "BETHINK_DATA_DIR": str(tmp_path / "data"),
            "BETHINK_EMBEDDER": "hash", "BETHINK_WORKER": "off",
        }  # fmt: skip
        return subprocess.run(
            [Path(sys.executable).parent / "bethink", *words],
            env=env, cwd=project, capture_output=True, text=True, check=False,
        )  # fmt: skip

    for words in (
        ["recall", "x"],
        ["recall", "x", "--profile", "evil"],
        ["profiles", "show", "evil"],
    ):
        ran = run(*words)
        assert ran.returncode == 2, ran.stderr
        assert "only a profile in your own folder may import code" in " ".join(ran.stderr.split())
        assert "RUN" not in ran.stdout
    ran = run("recall", "x", "--profile", "good")
    assert "RUN" in ran.stdout
    assert "cannot be imported: ImportError: as planned" in " ".join(ran.stderr.split())


@each_row(
    ("slot", "use", "said"),
    [
        ("gate", "plugged_parts:Plain", "is no stage: it must be a dataclass"),
        ("gate", "plain", "is no stage: it must be a dataclass"),
        ("gate", "plugged_parts:Thawed", "it must be frozen"),
        ("gate", "plugged_parts:Mute", "it must be called with 2 arguments"),
        ("gate", "plugged_parts:Latest", "it must be called with 2 arguments"),
        ("gate", "plugged_parts:Warn", "is no stage: a call must return"),
        ("gate", "plugged_parts:Nameless", "has no `name`"),
        ("gate", "plugged_parts:Unreadable", "its annotations cannot be read"),
        ("gate", "plugged_parts:Absent", "cannot be imported: AttributeError"),
        ("gate", "absent_parts:Absent", "cannot be imported: ModuleNotFoundError"),
        ("gate", "plugged_parts:", "cannot be imported"),
        ("gate", ":Half", "cannot be imported"),
        ("assemble", "plugged_parts:Half", "is no assembler: a call must return AnswerExtras"),
        ("channels", "plugged_parts:Half", "is no retriever: it must be called with 1 argument"),
    ],
)
def test_a_class_that_does_not_fit_its_slot_is_refused(
    installed: Path, slot: str, use: str, said: str
) -> None:
    """With the file and the key."""
    with pytest.raises(BadProfile) as caught:
        parse_profile(profile(f"[[{slot}]]\nuse = '{use}'"), "mine", "mine.toml", may_import=True)

    assert f"mine.toml: {slot}[" in caught.value.message
    assert said in caught.value.message


def test_settings_of_a_foreign_part_are_checked(installed: Path) -> None:
    """Unknown ones, wrong types, and what the part itself refuses."""
    for lines, said in (
        ("shard = 1", "gate[0]: there is no setting 'shard'"),
        ("share = 'x'", "gate[0].share is 'x'"),
        ("share = 0.0", "gate[0]: share must not be zero"),
    ):
        text = profile(f"[[gate]]\nuse = 'plugged_parts:Demanding'\n{lines}")
        with pytest.raises(BadProfile) as caught:
            parse_profile(text, "mine", "mine.toml", may_import=True)
        assert f"mine.toml: {said}" in caught.value.message


def test_doctor_names_what_cannot_be_used(installed: Path) -> None:
    """Each plug-in is loaded; a broken or shadowing one is a finding."""
    from bethink.cli.health import _check_plugins

    found = {finding.detail: finding.ok for finding in _check_plugins()}

    assert found["retriever latest"]
    assert found["store other"]
    assert [detail.split(" of ")[0] for detail, ok in found.items() if not ok] == [
        "the retriever 'broken'",
        (
            "the plug-in plugged provides a retriever 'lexical', which is built in; "
            "the built-in one is used"
        ),
    ]


def test_a_profile_with_foreign_parts_is_written_by_their_names(installed: Path) -> None:
    """By the plug-in's name, else by module and class, and read back equal."""
    from bethink.eval.tune import profile_toml

    text = "[[channels]]\nuse = 'latest'\n[[gate]]\nuse = 'plugged_parts:Demanding'\n"
    made = parse_profile(text, "mine", "mine.toml", may_import=True)

    written = profile_toml(made)

    assert 'use = "latest"' in written
    assert 'use = "plugged_parts:Demanding"' in written
    assert parse_profile(written, "mine", "x.toml", may_import=True) == made


def test_an_error_inside_a_plugin_names_the_part_and_its_package(
    installed: Path,
) -> None:
    """Not "a bug in Bethink", whichever surface reports it; ours are still ours."""
    made = parse_profile(profile("[[gate]]\nuse = 'failing'"), "mine", "mine.toml")
    with Memory.open(":memory:", embedder="hash") as memory:
        memory.remember("The key lies under the mat")
        with pytest.raises(KeyError) as caught:
            memory.recall("where is the key?", profile=made)
    said = "an error in the stage 'failing' of the plug-in plugged"
    assert registry.name_failure(caught.value) == said
    assert classify_error(caught.value).message == f"{said}: KeyError: 'key'"
    assert log_bug("a call", caught.value) == f"{said}: KeyError"

    slow = open_embedder("sized:7")
    assert slow is not None
    with pytest.raises(KeyError) as caught:
        slow.embed_query("fail")
    assert "of the plug-in plugged" in registry.name_failure(caught.value)
    assert registry.name_failure(KeyError("ours")) == "a bug in Bethink"
