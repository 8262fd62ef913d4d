"""Profiles written as TOML."""

from __future__ import annotations

import dataclasses

import pytest

from recollect.eval.toml import profile_toml
from recollect.profile import load_profile, parse_profile, profile_names


@pytest.mark.parametrize("name", sorted(profile_names()))
def test_every_shipped_profile_survives_writing_and_reading(name):
    """What is written reads back as the same profile."""
    profile = load_profile(name)

    assert parse_profile(profile_toml(profile, ["a remark"]), name, "x.toml") == profile


def test_awkward_titles_survive():
    """Quotes, backslashes, controls and other scripts come back as they were."""
    title = 'a "quoted" \\ title\twith\x7f controls – 題'
    profile = dataclasses.replace(load_profile("default"), title=title)

    assert parse_profile(profile_toml(profile), "default", "x.toml").title == title
