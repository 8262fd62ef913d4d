"""How often the default profile is silent, rightly and wrongly: it may only get better."""

from __future__ import annotations

from collections import Counter

import pytest

from recollect.eval.datasets import Reading, open_dataset
from recollect.eval.runner import Outcome, Plan, run
from recollect.eval.silence import abstention
from recollect.eval.spaces import Shelf
from recollect.profile import load_profile
from recollect.settings import Settings


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    profiles = {"default": load_profile("default")}
    plan = Plan(foreign="off")
    shelf = Shelf(Settings(), in_memory=True)
    return run(open_dataset("builtin", Reading()), profiles, plan, shelf).outcomes[0]


def test_what_is_about_something_else_is_met_with_silence(outcome: Outcome) -> None:
    """Nearly always where the subject is foreign, nearly half where it could be known here."""
    silent = Counter(one.category for one in outcome.own if one.is_silent)

    assert silent["irrelevant"] >= 12
    assert silent["unanswerable"] >= 9


def test_what_is_known_is_told(outcome: Outcome) -> None:
    """Of 68 answers that were found two may be held back, and none that stood first."""
    assert abstention(outcome)["lost"] <= 2
    held_back = [one for one in outcome.own if one.relevant and one.is_silent and one.offered]
    assert not [one.key for one in held_back if one.offered[0] in one.relevant]
