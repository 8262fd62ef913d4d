"""Whole runs on small data: stored for real, asked for real."""

from __future__ import annotations

import dataclasses
import json

import pytest

from bethink.config.settings import Settings
from bethink.errors import Refused
from bethink.eval.case import Case, Dataset, Question, neutral_id
from bethink.eval.datasets import DatasetOptions, open_dataset
from bethink.eval.report import build_report
from bethink.eval.runner import Run, RunPlan, pool_units, run_evaluation, run_recall
from bethink.eval.spaces import SpaceProvider
from bethink.eval.tune import SearchOptions, ablations, split_samples, tunable_parameters, tune
from bethink.memory import Memory
from bethink.model import Draft
from bethink.retrieval.profile import load_profile

pytestmark = pytest.mark.timeout(600)  # whole runs, also on a busy machine

PLAIN = {"default": load_profile("default")}

TEXTS = {
    "kite": "Aunt Rosalind gave me a red kite with a long tail",
    "boat": "The rowing boat is moored behind the old mill",
    "bread": "Sourdough needs twelve hours in the cool pantry",
    "clock": "The grandfather clock loses four minutes a week",
    "twin": "The grandfather clock loses four minutes a week",
}
ASKED = {
    "who gave me the kite?": "kite",
    "where is the rowing boat moored?": "boat",
    "how long does sourdough need?": "bread",
    "how many minutes does the clock lose?": "twin",
}


def case(name: str = "home", level: str = "turn") -> Case:
    return Case(
        name=name,
        questions=tuple(
            Question(f"{name}/{n}", text, {unit if level == "turn" else "s1": 1.0})
            for n, (text, unit) in enumerate(ASKED.items())
        ),
        drafts=tuple(
            Draft(text, id=neutral_id(f"{name}{ref}"), source="note") for ref, text in TEXTS.items()
        ),
        refs=tuple(TEXTS),
        units=tuple(TEXTS) if level == "turn" else ("s1", "s1", "s1", "s2", "s2"),
    )


def dataset(*cases: Case, level: str = "turn") -> Dataset:
    return Dataset("toy", "a toy", lambda: iter(cases), level=level)


def shelf(**where) -> SpaceProvider:
    return SpaceProvider(Settings(), in_memory=not where.get("cache_folder"), **where)


def measured(result: Run) -> dict:
    """The report without what no two runs have in common: times."""
    report = build_report(result)
    for profile in report["profiles"]:
        del profile["speed"]
    del report["measured_on"]["memories_per_second"]
    return report


def test_the_same_seed_gives_the_same_numbers():
    """Two runs over the same data agree in every figure but time."""
    data = open_dataset("builtin", DatasetOptions())
    plan = RunPlan(strangers=10)

    first = measured(run_evaluation(data, PLAIN, plan, shelf()))
    again = measured(run_evaluation(data, PLAIN, plan, shelf()))

    assert first == again


def test_a_duplicate_is_found_by_finding_what_it_repeats():
    """Five drafts, four memories; the one that was not stored twice still counts."""
    result = run_evaluation(dataset(case()), PLAIN, RunPlan(), shelf())
    scores = build_report(result)["profiles"][0]["quality"]["all"]

    assert result.stored == 5
    assert scores["recall@5"]["value"] == 1.0


def test_sessions_are_judged_by_their_turns():
    """A session is found where its best turn stands, once."""
    result = run_evaluation(
        dataset(case(level="session"), level="session"), PLAIN, RunPlan(), shelf()
    )

    for asked in result.outcomes[0].own:
        assert len(set(asked.ranked)) == len(asked.ranked)
        assert set(asked.ranked) <= {"s1", "s2"}


def test_a_kept_space_is_used_again_until_something_changes(tmp_path):
    """The second run stores nothing; other texts are stored anew."""
    changed = dataclasses.replace(
        case(), drafts=(*case().drafts[:-1], Draft("something else", id="other"))
    )

    runs = [
        run_evaluation(dataset(content), PLAIN, RunPlan(), shelf(cache_folder=tmp_path))
        for content in (case(), case(), changed)
    ]

    assert [result.stored for result in runs] == [5, 0, 5]
    assert runs[1].rate is None
    ranked = [[asked.ranked for asked in result.outcomes[0].own] for result in runs[:2]]
    assert ranked[0] == ranked[1]


def test_questions_of_one_case_are_foreign_to_another():
    """Each memory is asked what only the other knows."""
    result = run_evaluation(dataset(case("home"), case("work")), PLAIN, RunPlan(), shelf())

    kinds = result.outcomes[0].foreign
    assert set(kinds) == {"foreign", "answer taken out"}
    assert all(asked.key.endswith(("@home", "@work")) for asked in kinds["foreign"])


def test_a_question_is_asked_again_without_its_answer():
    """While it is asked, what answers it is out of recall; afterwards it is back."""
    with shelf().open("toy", case(), expendable=True) as filled:
        (question, *_) = filled.questions

        with filled.without(question.relevant):
            gone = run_recall(filled, question, PLAIN["default"].without("gate"))
        back = run_recall(filled, question, PLAIN["default"])

    assert "kite" not in pool_units(gone.hits, filled.units)
    assert pool_units(back.hits, filled.units)[0] == "kite"


def test_a_cached_space_is_never_changed(tmp_path):
    """Memories are taken out of a copy: the cached file keeps every byte."""
    shelves = shelf(cache_folder=tmp_path)
    run_evaluation(dataset(case()), PLAIN, RunPlan(foreign="off"), shelves)
    (kept,) = tmp_path.rglob("space.db")
    before = kept.read_bytes()

    result = run_evaluation(dataset(case()), PLAIN, RunPlan(), shelves)

    assert len(result.outcomes[0].foreign["answer taken out"]) == 4
    assert kept.read_bytes() == before


def test_one_case_borrows_its_strangers():
    """Where there is no other case, guests ask."""
    guest = Case("guest", (Question("g", "why do cats purr?", {"x": 1.0}),))

    result = run_evaluation(dataset(case()), PLAIN, RunPlan(), shelf(), guest_cases=[guest])

    assert [asked.key for asked in result.outcomes[0].foreign["foreign"]] == ["g@home"]


def test_a_space_that_is_there_is_asked_and_left_alone(tmp_path):
    """Questions go to an existing space by id or text; nothing is stored, nothing marked."""
    settings = Settings(data_dir=tmp_path)
    with Memory.open("mine", settings=settings) as memory:
        kept = memory.remember_many(list(TEXTS.values())[:3])
    asked = tmp_path / "q.jsonl"
    asked.write_text(
        json.dumps({"query": "who gave me the kite?", "relevant": [kept[0].id]})
        + "\n"
        + json.dumps({"query": "rowing boat", "relevant": ["behind the OLD mill"]})
    )

    data = open_dataset("jsonl", DatasetOptions(path=asked, space="mine"))
    result = run_evaluation(data, PLAIN, RunPlan(), SpaceProvider(settings))

    assert [one.ranked[0] for one in result.outcomes[0].own] == [kept[0].id, kept[1].id]
    with Memory.open("mine", settings=settings) as memory:
        assert [item.recalls for item in memory.browse()] == [0, 0, 0]


def test_an_ablation_takes_out_every_part_once():
    """Each channel, each stage and each slot that holds several; never the last channel."""
    profile = PLAIN["default"]

    variants = ablations(profile, "default")

    assert len(set(variants.values())) == len(variants)
    assert profile not in variants.values()
    assert all(variant.channels for variant in variants.values())
    named = {label.removeprefix("default without ") for label in variants}
    assert {channel.name for channel in profile.channels} <= named


def test_the_walk_before_the_gate_is_what_a_walk_without_one_answers():
    """What the trace says stood before the gate is what the profile without its gate returns."""
    open_profile = PLAIN["default"].without("gate")
    both = {"default": PLAIN["default"], "open": open_profile}

    data = open_dataset("builtin", DatasetOptions())
    result = run_evaluation(data, both, RunPlan(foreign="off"), shelf())

    gated, free = result.outcomes
    for one, other in zip(gated.own, free.own, strict=True):
        assert one.offered == other.ranked[: len(one.offered)]


def spoiled():
    """A profile that listens to words far too little."""
    profile = load_profile("siftcoder")
    channels = tuple(
        dataclasses.replace(channel, weight=0.25 if channel.name == "lexical" else 4.0)
        for channel in profile.channels
    )
    return dataclasses.replace(profile, channels=channels)


def filled_builtin():
    data = open_dataset("builtin", DatasetOptions())
    (only,) = data.cases()
    return shelf().open(data.name, only)


def test_a_search_is_repeatable_and_never_sees_what_is_held_out():
    """The same seed tries the same profiles; training and held-out questions share none."""
    profile = spoiled()
    search = SearchOptions(trials=3, seed=3, minutes=5)
    with filled_builtin() as filled:
        asked = [(filled, question) for question in filled.questions]
        turned = tunable_parameters(profile, ["channels.*.weight"])

        train, held_out = split_samples(asked, search)
        first = tune(profile, turned, asked, search)
        again = tune(profile, turned, asked, search)

    assert not {q.key for _, q in train} & {q.key for _, q in held_out}
    assert first == again
    assert first.train.value >= 0
    assert first.held_out.n == len(held_out)


def test_nothing_better_gives_the_profile_back():
    """Without a trial nothing changes, and a change of nothing is noise."""
    profile = load_profile("siftcoder")
    with filled_builtin() as filled:
        asked = [(filled, question) for question in filled.questions]

        result = tune(
            profile, tunable_parameters(profile), asked, SearchOptions(trials=3, minutes=0)
        )

    assert result.profile == profile
    assert result.changes == ()
    assert result.is_noise


@pytest.mark.parametrize("count", [0, 3])
def test_too_few_questions_are_not_split(count):
    """A split that leaves a side almost empty is refused."""
    with pytest.raises(Refused, match="too few"):
        split_samples(
            [(None, Question(str(n), "?", {"a": 1.0})) for n in range(count)], SearchOptions()
        )
