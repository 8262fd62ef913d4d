"""How often the default profile answers what nothing answers, and withholds what it knows."""

from __future__ import annotations

from collections import Counter

import pytest

from bethink.config.settings import Settings
from bethink.eval.datasets import DatasetOptions, open_dataset
from bethink.eval.metrics import abstention_report
from bethink.eval.runner import ProfileResult, RunPlan, run_evaluation
from bethink.eval.spaces import SpaceProvider
from bethink.retrieval.profile import load_profile


@pytest.fixture(scope="module")
def outcome() -> ProfileResult:
    profiles = {"default": load_profile("default")}
    plan = RunPlan(foreign="off")
    shelf = SpaceProvider(Settings(), in_memory=True)
    return run_evaluation(
        open_dataset("builtin", DatasetOptions()), profiles, plan, shelf
    ).outcomes[0]


def test_what_is_about_something_else_is_not_told_as_found(outcome: ProfileResult) -> None:
    """At most a few whose subject is foreign; what could be known here has a subject here."""
    found = Counter(one.category for one in outcome.own if one.is_found)
    silent = Counter(one.category for one in outcome.own if one.is_silent)

    assert found["irrelevant"] <= 3
    assert silent["irrelevant"] >= 4


def test_what_is_known_is_told(outcome: ProfileResult) -> None:
    """Of 68 answers that were found one may be held back, and none that stood first."""
    assert abstention_report(outcome)["lost"] <= 1
    held_back = [one for one in outcome.own if one.relevant and one.is_silent and one.offered]
    assert not [one.key for one in held_back if one.offered[0] in one.relevant]
