"""Profiles are data, and mistakes in them are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from bethink.errors import BadProfile, NotFound
from bethink.retrieval.profile import SLOTS, Profile, load_profile, parse_profile, profile_names
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.stages import ASSEMBLERS, FUSIONS, STAGES
from rows import each_row

SMALL = """
title = "small"
[[channels]]
use = "lexical"
depth = 7
[fuse]
use = "rrf"
k = 10
[[adjust]]
use = "decay"
tau_days = 3
[adjust.per_tool]
Bash = 1
[budget]
k = 4
"""


def test_a_profile_is_read_from_toml() -> None:
    """Every table fills its slot; whole numbers do for floats, tables become pairs."""
    profile = parse_profile(SMALL, "small", "small.toml")

    assert profile.channels[0].depth == 7
    assert profile.fuse.k == 10.0
    assert profile.adjust[0].per_tool == (("Bash", 1.0),)
    assert profile.budget.k == 4
    assert profile == parse_profile(SMALL, "small", "small.toml")
    assert hash(profile)


@each_row(
    ("text", "said"),
    [
        ("title = 3\n[[channels]]\nuse='lexical'", "title is 3"),
        ("nonsense", "not valid TOML"),
        ("", "at least one channel"),
        ("[[channels]]\nuse='lexcal'", "channels[0].use is 'lexcal'"),
        ("[[channels]]\ndepth=3", 'must be a table with a `use = "..."`'),
        ("[channels]\nuse='lexical'", "must be written as [[channels]]"),
        ("[[channels]]\nuse='lexical'\ndeep=3", "no setting 'deep'"),
        ("[[channels]]\nuse='lexical'\ndepth='x'", "channels[0].depth is 'x'"),
        ("[[channels]]\nuse='lexical'\ndepth=true", "channels[0].depth is True"),
        ("[[channels]]\nuse='lexical'\nweight=nan", "must be a finite number"),
        ("[[channels]]\nuse='lexical'\ndepth=2.5", "must be a whole number"),
        ("[[channels]]\nuse='dense'\nweighted=1", "must be true or false"),
        ("[[channels]]\nuse='lexical'\nname=1", "must be text in quotes"),
        ("[[channels]]\nuse='lexical'\nlevels='raw'", "levels is 'raw', but must be a list"),
        ("[[channels]]\nuse='lexical'\nb=1.5", "channels[0].b is 1.5, but must be from 0 to 1"),
        ("[[channels]]\nuse='lexical'\nweight=-1", "channels[0].weight is -1.0"),
        ("[[channels]]\nuse='lexical'\ndepth=0", "depth is 0, but must be above 0"),
        ("[[channels]]\nuse='lexical'\nlevels=['rwa']", "channels[0].levels: 'rwa' is no level"),
        ("[[channels]]\nuse='lexical'\nafter=['dens']", "channels[0].after: there is no channel"),
        ("[[channels]]\nuse='lexical'\n[budget]\nk=0", "budget.k is 0, but must be from 1 to 200"),
        ("[[channels]]\nuse='lexical'\n[budget]\nmost={rwa=1}", "budget.most: 'rwa' is no level"),
        ("[[channels]]\nuse='lexical'\n[budget]\nmost={raw='x'}", "budget.most.raw is 'x'"),
        ("[[channels]]\nuse='lexical'\n[budget]\nmost=[[]]", "budget.most is [[]], but must be"),
        ("[[channels]]\nuse='lexical'\nlevels={raw=1}", "but must be a list"),
        ("[[channels]]\nuse='lexical'\n[[channels]]\nuse='lexical'", "same name"),
        ("[[channels]]\nuse='lexical'\n[fuse]\nuse='weighted'\nscale='big'", "fuse.scale is 'big'"),
        ("[[channels]]\nuse='lexical'\n[track]\nspeed=3", "track: there is no setting 'speed'"),
        ("[[channels]]\nuse='lexical'\n[track]\nname=3", "track.name is 3"),
        ("[[channels]]\nuse='lexical'\n[[assemble]]\nuse='glue'", "assemble[0].use is 'glue'"),
        ("[[channels]]\nuse='lexical'\n[assemble]\nuse='captions'", "written as [[assemble]]"),
        ("[[channels]]\nuse='lexical'\n[[text]]\nshow='all'", "text[0].show is 'all'"),
        ("[[channels]]\nuse='lexical'\n[[adjust]]\nuse='composite'\nheet=1", "no setting 'heet'"),
        ("gates=1\n[[channels]]\nuse='lexical'", "no setting 'gates'"),
    ],
)
def test_a_mistake_is_named_by_file_and_key(text: str, said: str) -> None:
    """The error holds the file, the key and the value."""
    with pytest.raises(BadProfile) as error:
        parse_profile(text, "mine", "mine.toml")

    assert "mine.toml" in error.value.message
    assert said in error.value.message


def test_the_remedy_names_what_is_allowed() -> None:
    """Unknown names get the list of known ones, and the nearest."""
    with pytest.raises(BadProfile) as error:
        parse_profile("[[channels]]\nuse='lexical'\ndepht=3", "mine", "mine.toml")
    assert "did you mean 'depth'?" in error.value.remedy

    with pytest.raises(NotFound) as missing:
        load_profile("defalt")
    assert "did you mean 'default'?" in missing.value.remedy


@each_row(
    ("text", "allowed"),
    [
        ("[[assemble]]\nuse='glue'", "captions"),
        ("[[text]]\nshow='all'", "captions, entities"),
        ("[track]\nspeed=3", "name"),
        ("[[adjust]]\nuse='lenght'", "length"),
        ("[[channels]]\nuse='dense'\nafter=['lexicla']", "dense, lexical"),
        ("[budget]\nmost={rwa=1}", "raw, item, insight"),
    ],
)
def test_the_later_slots_name_what_is_allowed_too(text: str, allowed: str) -> None:
    """Beside the file and the key."""
    with pytest.raises(BadProfile) as error:
        parse_profile(f"[[channels]]\nuse='lexical'\n{text}", "mine", "mine.toml")

    assert allowed in error.value.remedy


def test_an_own_profile_goes_before_a_shipped_one(tmp_path: Path) -> None:
    """A file in one of the folders is found by its name."""
    (tmp_path / "mine.toml").write_text(SMALL, encoding="utf-8")
    (tmp_path / "default.toml").write_text(SMALL, encoding="utf-8")

    assert load_profile("mine", [tmp_path]).title == "small"
    assert load_profile("default", [tmp_path]).title == "small"
    assert load_profile("default").title != "small"
    assert profile_names([tmp_path, tmp_path / "none"])["mine"] == tmp_path / "mine.toml"


@each_row("name", sorted(profile_names()))
def test_every_shipped_profile_loads(name: str) -> None:
    """What comes with Bethink is valid and says what it is."""
    profile = load_profile(name)

    assert isinstance(profile, Profile)
    assert profile.title


def test_a_part_can_be_taken_out() -> None:
    """An ablation is one call, and a wrong name does not pass unnoticed."""
    profile = load_profile("siftcoder")

    assert profile.without("adjust").adjust == ()
    assert [c.name for c in profile.without("dense").channels] == ["lexical"]
    assert [s.name for s in profile.without("decay").adjust] == ["boost"]
    with pytest.raises(NotFound):
        profile.without("nothing")


def test_the_shipped_profiles_have_their_names() -> None:
    """Ours are in profiles/, those of an emulated system in its folder."""
    assert list(profile_names()) == [
        "abmind",
        "default",
        "default-deep",
        "linksee",
        "memind-deep",
        "memind-simple",
        "remind",
        "siftcoder",
    ]
    for name in profile_names():
        assert load_profile(name).name == name


@each_row("name", ["../systems/remind/profile", "memind", "profile", ""])
def test_a_path_is_no_name_of_a_profile(name: str) -> None:
    """Only what is listed is loaded."""
    with pytest.raises(NotFound):
        load_profile(name)


def test_our_own_profiles_use_no_part_of_an_emulated_system() -> None:
    """A reader of the code of the default profile reads only what that profile runs."""
    for profile in map(load_profile, ("default", "default-deep")):
        for part in parts_of(profile):
            assert not type(part).__module__.startswith("bethink.systems"), part.name


def test_every_part_is_used() -> None:
    """By a shipped profile, by one of its settings names, or by the engine."""
    used = {type(part) for name in profile_names() for part in parts_of(load_profile(name))}
    by_name = {STAGES["overlap"], RETRIEVERS["newest"]}  # siftcoder's rerank; browsing
    every = {one[name] for one in (RETRIEVERS, FUSIONS, STAGES, ASSEMBLERS) for name in one}
    ours = {part for part in every if part.__module__.startswith("bethink.")}

    assert ours == used | by_name


def parts_of(profile: Profile) -> list[object]:
    slots = [part for slot in SLOTS for part in profile.slot(slot)]
    return [*profile.channels, profile.fuse, *slots, *profile.assemble]
