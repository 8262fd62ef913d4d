"""Profiles written as TOML."""

from __future__ import annotations

import dataclasses

import pytest

from bethink.errors import BadProfile
from bethink.eval.tune import profile_toml
from bethink.retrieval.profile import load_profile, parse_profile, profile_names
from rows import each_row


@each_row("name", sorted(profile_names()))
def test_every_shipped_profile_survives_writing_and_reading(name):
    """What is written reads back as the same profile."""
    profile = load_profile(name)

    assert parse_profile(profile_toml(profile, ["a remark"]), name, "x.toml") == profile


def test_awkward_titles_survive():
    """Quotes, backslashes, controls and other scripts come back as they were."""
    title = 'a "quoted" \\ title\twith\x7f controls – 題'
    profile = dataclasses.replace(load_profile("default"), title=title)

    assert parse_profile(profile_toml(profile), "default", "x.toml").title == title


def test_a_part_that_no_profile_could_name_is_refused():
    """What cannot be read back is not written."""
    stage = dataclasses.make_dataclass("Own", [("name", str, "own")], frozen=True)()
    profile = dataclasses.replace(load_profile("default"), adjust=(stage,))

    with pytest.raises(BadProfile, match="Own is not registered"):
        profile_toml(profile)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_toml_cannot_say_is_refused(value):
    """Neither infinities nor objects."""
    profile = load_profile("default")
    odd = dataclasses.replace(profile.channels[0], weight=value)

    with pytest.raises(BadProfile, match="has no TOML form"):
        profile_toml(dataclasses.replace(profile, channels=(odd,)))
