"""The five systems' own variables and config files do here what their pages say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bethink import systems
from bethink.config.aliases import (
    aliases_of,
    config_files_of,
)
from bethink.config.settings import ForeignConfig, Settings, foreign_variables, load_settings
from bethink.errors import BadSetting
from bethink.retrieval.profile import Profile, load_profile, parse_profile, profile_names
from rows import each_row

SYSTEMS_WITH_ALIASES = sorted(
    path.parent.name for path in Path(systems.__file__).parent.glob("*/aliases.toml")
)
ALIASES = [alias for system in SYSTEMS_WITH_ALIASES for alias in aliases_of(system)]
SLOTS = ("channels", "expand", "adjust", "rerank", "diversify", "gate")


class Desk:
    """A user with a home and a project, and the variables that are set."""

    def __init__(self, folder: Path) -> None:
        self.home = Path(os.path.realpath(folder)) / "home"
        self.project = self.home / "app"
        (self.project / ".bethink").mkdir(parents=True)

    def settings(self, env: dict[str, str] | None = None, **overrides: Any) -> Settings:
        own = {
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "BETHINK_CONFIG_DIR": str(self.home / "settings"),
        }
        return load_settings(self.project, own | (env or {}), overrides)

    def profile(self, name: str, env: dict[str, str] | None = None) -> Profile:
        settings = self.settings(env)
        return load_profile(name, settings.profile_folders(), settings.changes(name))

    def write(self, place: str, content: object) -> Path:
        path = self.home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def at(profile: Profile, key: str) -> Any:
    """What a profile has under a dotted key."""
    slot, *rest = key.split(".")
    part = getattr(profile, slot)
    if slot in SLOTS:
        part = next(one for one in part if one.name == rest[0])
    return getattr(part, rest[-1])


NUMBERS = [
    ("remind", "REMIND_HYBRID_KEYWORD_WEIGHT", "0.5", "fuse.keyword_weight", 0.5),
    ("remind", "REMIND_HYBRID_KEYWORD_WEIGHT", "0", "fuse.keyword_weight", 0.0),
    ("remind", "REMIND_RECALL_INITIAL_CANDIDATES", "15", "channels.concepts.depth", 15),
    ("remind", "REMIND_MIN_ACTIVATION", "0.2", "gate.min_activation.min_score", 0.2),
    ("remind", "REMIND_DECAY_INTERVAL", "0", "track.decay_interval", 0),
    ("remind", "REMIND_DECAY_RATE", "0.25", "track.decay_rate", 0.25),
    ("abmind", "EMBEDDING_SIMILARITY_THRESHOLD", "0.62", "channels.se.min_cosine", 0.62),
    ("abmind", "RECALL_DECAY_DAYS", "30", "adjust.fading.days", 30),
    ("abmind", "RECALL_DECAY_FLOOR", "0.4", "adjust.fading.floor", 0.4),
    ("abmind", "RECALL_EMOTION_BOOST", " 0.3 ", "adjust.fading.emotion", 0.3),
]


@each_row(("profile", "variable", "text", "key", "value"), NUMBERS)
def test_their_variable_changes_our_number(
    desk: Desk, profile: str, variable: str, text: str, key: str, value: float
) -> None:
    """That one of that profile, and nothing of any other."""
    assert at(desk.profile(profile, {variable: text}), key) == value

    assert at(desk.profile(profile), key) == at(load_profile(profile), key) != value
    for other in set(profile_names()) - {profile}:
        assert desk.profile(other, {variable: text}) == load_profile(other)


@each_row(
    ("mode", "kept"),
    [
        (
            "hybrid",
            ["sf.porter", "sf.trigram", "sf.spelling", "sf.original", "se", "ss", "s6", "s8"],
        ),
        ("fts", ["sf.porter", "sf.trigram", "sf.spelling", "sf.original"]),
        ("FTS", ["sf.porter", "sf.trigram", "sf.spelling", "sf.original"]),
        ("signature", ["ss"]),
    ],
)
def test_abminds_search_mode_says_which_stages_are_active(
    desk: Desk, mode: str, kept: list[str]
) -> None:
    """MEMORY_SEARCH_MODE: all, the words, or the signatures alone."""
    profile = desk.profile("abmind", {"MEMORY_SEARCH_MODE": mode})

    assert [channel.name for channel in profile.channels] == kept


@pytest.mark.parametrize(("said", "there"), [("false", False), ("0", False), ("true", True)])
def test_abminds_embedding_stage_can_be_switched_off(desk: Desk, said: str, there: bool) -> None:
    """EMBEDDING_ENABLED takes Se out of that profile; the vectors of the others stay."""
    settings = desk.settings({"EMBEDDING_ENABLED": said}, profile="abmind")
    profile = desk.profile("abmind", {"EMBEDDING_ENABLED": said})

    assert ("se" in [channel.name for channel in profile.channels]) is there
    assert settings.embedder == "encoder"


@each_row(
    ("profile", "env", "name", "value"),
    [
        ("remind", {"REMIND_RERANKING_ENABLED": "true"}, "reranker", "cross-encoder"),
        ("remind", {"REMIND_RERANKING_ENABLED": "false"}, "reranker", "none"),
        ("remind", {"REMIND_CLI_RECALL_WORKER_IDLE_SECONDS": "42"}, "worker_idle", 42),
        ("remind", {"REMIND_RERANKING_ENABLED": "true",
                    "REMIND_RERANKING_MODEL": "cross-encoder/ms-marco-MiniLM-L-6-v2"},
         "reranker", "cross-encoder"),
        ("remind", {"REMIND_RERANKING_ENABLED": "true", "REMIND_RERANKING_MODEL": "models/tiny"},
         "reranker", "cross-encoder:models/tiny"),
        ("remind", {"REMIND_RERANKING_ENABLED": "no", "REMIND_RERANKING_MODEL": "models/tiny"},
         "reranker", "none"),
        ("remind", {"REMIND_RERANKING_MODEL": "models/tiny"}, "reranker", "none"),
        ("abmind", {"EMBEDDING_ENABLED": "true", "EMBEDDING_MODEL": "nomic-embed-text"},
         "embedder", "ollama:nomic-embed-text"),
        ("abmind", {"EMBEDDING_MODEL": "nomic-embed-text"}, "embedder", "encoder"),
    ],
)  # fmt: skip
def test_their_variable_changes_our_setting(
    desk: Desk, profile: str, env: dict[str, str], name: str, value: str | int
) -> None:
    """While their profile is the one in use; other programs may mean others by the name."""
    assert getattr(desk.settings(env, profile=profile), name) == value
    assert getattr(desk.settings(env), name) == getattr(Settings(), name)


def test_linksees_folder_is_our_data_folder(desk: Desk) -> None:
    """LINKSEE_MEMORY_DIR, relative to where one stands."""
    env = {"LINKSEE_MEMORY_DIR": "memories"}

    assert desk.settings(env, profile="linksee").data_dir == desk.project / "memories"
    assert desk.settings(env).data_dir is None
    configured = desk.settings(env | {"BETHINK_PROFILE": "linksee"})
    assert configured.data_dir == desk.project / "memories"
    assert str(configured.origin("data_dir")) == "environment LINKSEE_MEMORY_DIR"


def test_signatures_have_the_width_they_have(desk: Desk) -> None:
    """SIGNATURE_BITS may say so; any other width is refused rather than ignored."""
    assert desk.profile("abmind", {"SIGNATURE_BITS": "256"}) == load_profile("abmind")
    with pytest.raises(BadSetting, match="SIGNATURE_BITS is '128'"):
        desk.profile("abmind", {"SIGNATURE_BITS": "128"})


RETRIEVAL = [
    ("retrieval", "rrfK", 20, "fuse.k", 20.0),
    ("retrieval", "candidateK", 30, "channels.lexical.depth", 30),
    ("retrieval", "candidateK", 30, "channels.dense.depth", 30),
    ("retrieval", "candidatePool", 30, "channels.dense.depth", 30),
    ("retrieval", "topK", 10, "budget.k", 10),
    ("retrieval", "bm25Weight", 0, "channels.lexical.weight", 0.0),
    ("retrieval", "vectorWeight", 0.5, "channels.dense.weight", 0.5),
    ("decay", "tauMs", 14 * 86_400_000, "adjust.decay.tau_days", 14.0),
    ("decay", "tauMs", 0, "adjust.decay.tau_days", 0.0),
    ("decay", "halfLifeDays", 3, "adjust.decay.half_life_days", 3.0),
]


@each_row(("group", "key", "given", "ours", "value"), RETRIEVAL)
@each_row("place", [".siftcoder/v3/config.json", "app/.siftcoder/config.json"])
@each_row("wrapped", [True, False])
def test_siftcoders_file_changes_our_numbers(
    desk: Desk, group: str, key: str, given: float, ours: str, value: float, place: str,
    wrapped: bool,
) -> None:  # fmt: skip
    """The user's and the project's, with and without its own name at the top."""
    content = {"memory": {group: {key: given}}}
    desk.write(place, {"siftcoder": content} if wrapped else content)

    assert at(desk.profile("siftcoder"), ours) == value
    assert desk.profile("remind") == load_profile("remind")


def test_siftcoders_half_life_is_for_show_beside_a_tau(desk: Desk) -> None:
    """As its page says: the code uses tauMs, so a file with both fades by tauMs."""
    desk.write(
        ".siftcoder/v3/config.json",
        {"memory": {"decay": {"tauMs": 7 * 86_400_000, "halfLifeDays": 7}}},
    )

    assert desk.profile("siftcoder") == load_profile("siftcoder")


def test_siftcoders_rerank_puts_the_deterministic_one_in(desk: Desk) -> None:
    """And false leaves it out."""
    file = ".siftcoder/v3/config.json"
    desk.write(file, {"memory": {"retrieval": {"rerank": True}}})
    assert [stage.name for stage in desk.profile("siftcoder").rerank] == ["overlap"]

    desk.write(file, {"memory": {"retrieval": {"rerank": False}}})
    assert desk.profile("siftcoder").rerank == ()


def test_reminds_file_is_read(desk: Desk) -> None:
    """Every key of the page, in the folder the page names."""
    desk.write(
        ".remind/remind.config.json",
        {
            "hybrid_keyword_weight": 0.4, "recall_initial_candidates": 20, "min_activation": 0.1,
            "decay_interval": 5, "decay_rate": 0.2, "reranking_enabled": True,
            "reranking_model": "cross-encoder/ms-marco-MiniLM-L-6-v2", "llm_provider": "x",
        },
    )  # fmt: skip
    profile = desk.profile("remind")

    assert profile.fuse.keyword_weight == 0.4
    assert at(profile, "channels.concepts.depth") == 20
    assert at(profile, "gate.min_activation.min_score") == 0.1
    assert (profile.track.decay_interval, profile.track.decay_rate) == (5, 0.2)
    assert desk.settings(profile="remind").reranker == "cross-encoder"
    assert desk.settings().reranker == "none"


def test_the_stronger_source_wins(desk: Desk) -> None:
    """Their variable over their project's file, that over their user's file."""
    desk.write(".siftcoder/v3/config.json", {"memory": {"retrieval": {"rrfK": 10, "topK": 7}}})
    desk.write("app/.siftcoder/config.json", {"memory": {"retrieval": {"rrfK": 20}}})
    desk.write(".remind/remind.config.json", {"hybrid_keyword_weight": 0.1})

    profile = desk.profile("siftcoder")
    assert (profile.fuse.k, profile.budget.k) == (20, 7)
    blended = desk.profile("remind", {"REMIND_HYBRID_KEYWORD_WEIGHT": "0.9"})
    assert blended.fuse.keyword_weight == 0.9


def test_our_own_sources_go_before_theirs(desk: Desk) -> None:
    """argument > our variable > their variable > our files > their file > default."""
    desk.write(".remind/remind.config.json", {"reranking_enabled": True})
    assert desk.settings(profile="remind").reranker == "cross-encoder"

    (desk.project / ".bethink" / "config.toml").write_text('reranker = "overlap"\n')
    assert desk.settings(profile="remind").reranker == "overlap"

    theirs = {"REMIND_RERANKING_ENABLED": "false"}
    assert desk.settings(theirs, profile="remind").reranker == "none"

    ours = theirs | {"BETHINK_RERANKER": "overlap"}
    assert desk.settings(ours, profile="remind").reranker == "overlap"
    assert desk.settings(ours, profile="remind", reranker="none").reranker == "none"


BAD = [
    ("REMIND_HYBRID_KEYWORD_WEIGHT", "1.5", "a number from 0 to 1"),
    ("REMIND_HYBRID_KEYWORD_WEIGHT", "much", "a number from 0 to 1"),
    ("REMIND_HYBRID_KEYWORD_WEIGHT", "nan", "a number from 0 to 1"),
    ("REMIND_RECALL_INITIAL_CANDIDATES", "0", "a whole number from 1 to 1,000"),
    ("REMIND_RECALL_INITIAL_CANDIDATES", "1.5", "a whole number from 1 to 1,000"),
    ("REMIND_MIN_ACTIVATION", "-1", "a number from 0 to 1"),
    ("REMIND_DECAY_INTERVAL", "-1", "a whole number of 0 or more"),
    ("REMIND_DECAY_RATE", "inf", "a number from 0 to 1"),
    ("REMIND_RERANKING_ENABLED", "maybe", "true or false"),
    ("REMIND_CLI_RECALL_WORKER_IDLE_SECONDS", "0", "a whole number from 1 to 86,400"),
    ("REMIND_RERANKING_MODEL", "a\x07b", "text on one line"),
    ("MEMORY_SEARCH_MODE", "vector", "one of hybrid, fts, signature"),
    ("EMBEDDING_ENABLED", "2", "true or false"),
    ("EMBEDDING_MODEL", "a\nb", "text on one line"),
    ("EMBEDDING_SIMILARITY_THRESHOLD", "2", "a number from -1 to 1"),
    ("RECALL_DECAY_DAYS", "0", "a number of 1 or more"),
    ("RECALL_DECAY_FLOOR", "1e400", "a number from 0 to 1"),
    ("RECALL_EMOTION_BOOST", "-0.1", "a number from 0 to 10"),
    ("SIGNATURE_BITS", "512", "a whole number from 256 to 256"),
    ("LINKSEE_MEMORY_DIR", "a\x00b", "text on one line"),
]


@each_row(("variable", "text", "expected"), BAD)
def test_a_bad_value_is_named_by_its_variable(
    desk: Desk, variable: str, text: str, expected: str
) -> None:
    """With the value and what it must be, when their profile is used; not before."""
    profile = next(alias.profile for alias in ALIASES if alias.variable == variable)
    settings = desk.settings({variable: text})

    with pytest.raises(BadSetting) as caught:
        settings.changes(profile)
    assert caught.value.message == f"{variable} is {text!r}, but must be {expected}"
    with pytest.raises(BadSetting, match=variable):
        desk.settings({variable: text}, profile=profile)


def test_every_variable_of_the_table_has_its_test() -> None:
    """A new row in the table needs a good and a bad value here."""
    variables = {alias.variable for alias in ALIASES} - {""}

    assert variables == {variable for variable, _, _ in BAD}
    keys = {alias.key for alias in ALIASES if alias.profile == "siftcoder"}
    tested = {f"memory.{group}.{key}" for group, key, *_ in RETRIEVAL}
    assert keys == tested | {"memory.retrieval.rerank"}


@each_row(
    ("content", "said"),
    [
        ("{", "not valid JSON"),
        (b"\xff\xfe\xff".decode("latin1"), "not valid JSON"),
        # From Python 3.14 on the parser reaches the end, where a bracket is missing.
        ("[" * 60_000, "nested too deeply" if sys.version_info < (3, 14) else "not valid JSON"),
        ("[" * 100_000, "larger than 65,536 bytes"),
        ({"hybrid_keyword_weight": "lots"}, "hybrid_keyword_weight is 'lots'"),
        ({"hybrid_keyword_weight": True}, "hybrid_keyword_weight is True"),
        ({"hybrid_keyword_weight": [0.3]}, "hybrid_keyword_weight is [0.3]"),
        ({"reranking_enabled": "perhaps"}, "reranking_enabled is 'perhaps'"),
        ({"decay_interval": 1.5}, "decay_interval is 1.5"),
    ],
)
def test_a_bad_file_is_named(desk: Desk, content: object, said: str) -> None:
    """By its path and the key."""
    path = desk.write(".remind/remind.config.json", content)

    with pytest.raises(BadSetting) as caught:
        desk.profile("remind")
    assert str(path) in caught.value.message
    assert said in caught.value.message
    assert desk.profile("default") == load_profile("default")


@each_row("content", ["[]", "null", '"text"', "{}", '{"remind": 3}'])
def test_a_file_that_says_nothing_changes_nothing(desk: Desk, content: str) -> None:
    """Whatever its shape."""
    desk.write(".remind/remind.config.json", content)

    assert desk.profile("remind") == load_profile("remind")


def test_a_profile_of_ones_own_needs_the_part_that_is_named(desk: Desk) -> None:
    """A variable that could change nothing is told."""
    folder = desk.project / ".bethink" / "profiles"
    folder.mkdir()
    (folder / "remind.toml").write_text('[[channels]]\nuse = "lexical"\n')

    with pytest.raises(BadSetting, match=r"REMIND_MIN_ACTIVATION sets gate\.min_activation"):
        desk.profile("remind", {"REMIND_MIN_ACTIVATION": "0.2"})


def test_what_a_profile_refuses_is_told_by_the_variable(desk: Desk) -> None:
    """A profile of one's own may fill a slot with a part that has no such setting."""
    text = '[[channels]]\nuse = "lexical"\nname = "concepts"\n[fuse]\nuse = "rrf"\n'
    changes = desk.settings({"REMIND_HYBRID_KEYWORD_WEIGHT": "0.2"}).changes("remind")

    with pytest.raises(BadSetting, match=r"REMIND_HYBRID_KEYWORD_WEIGHT: mine\.toml: fuse"):
        parse_profile(text, "remind", "mine.toml", changes)


def test_every_target_exists() -> None:
    """What the table points at is there in the shipped profiles."""
    for alias in ALIASES:
        profile = load_profile(alias.profile)
        for target in alias.targets:
            if alias.verb == "set":
                assert at(profile, target) is not None or "half_life" in target
            elif alias.verb == "setting":
                assert target in asdict(Settings())
            else:
                assert hasattr(profile, target)


def test_a_strangers_project_decides_over_no_setting() -> None:
    """A system whose project file is read has numbers of the walk in it, nothing else."""
    for profile, files in ((one, config_files_of(one)) for one in SYSTEMS_WITH_ALIASES):
        if any(source == "project file" for source, _ in files):
            verbs = {alias.verb for alias in ALIASES if alias.profile == profile}
            assert "setting" not in verbs


def test_an_empty_variable_is_not_set(desk: Desk) -> None:
    """The shell's way to unset for one command."""
    assert (
        ForeignConfig.from_environment({"RECALL_DECAY_DAYS": ""}, None, None).changes("abmind")
        == ()
    )


def test_the_list_of_variables_has_those_of_the_tables() -> None:
    """The environment is filtered without reading the tables, by the same names."""
    assert {alias.variable for alias in ALIASES} - {""} == foreign_variables()


def test_a_recall_with_our_own_profile_does_not_load_aliases() -> None:
    """Other systems' names cost nothing where their profiles are not in use."""
    code = (
        "import sys, bethink; m = bethink.Memory.open(':memory:', embedder='none');"
        "m.remember('The key is in the vault'); m.recall('where is the key?');"
        "print(sorted(n for n in sys.modules if n.startswith(('bethink.systems', "
        "'bethink.config.aliases', 'bethink.store.sql.search.word_sets',"
        "'bethink.store.sql.search.pieces'))))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[]"


def test_no_table_is_read_for_our_own_profile() -> None:
    """A profile without a system has no aliases, and neither has a name that leads elsewhere."""
    for name in ("default", "default-deep", "memind-deep", "mine", "../systems/remind"):
        assert aliases_of(name) == ()
        assert config_files_of(name) == ()
