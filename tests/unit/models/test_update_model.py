"""The model of two memories: what it returns, what it refuses, and what it knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bethink.errors import BadText, ModelError
from bethink.ingest.updates import MIN_SUPERSESSION, MIN_UPDATE
from bethink.models.embed.encoder import ENCODER_DATA
from bethink.models.update_model import UPDATE_WEIGHTS, UpdateModel, update_model
from bethink.ports import PairVerdict
from fact_pairs import FLAGGED, SUPERSEDED, TRAPS, pairs

WEIGHTS = ENCODER_DATA / UPDATE_WEIGHTS
# Clear ones, four of each language, written before the model was asked.
UPDATES = [
    ("My dentist appointment is on Tuesday", "My dentist appointment was moved to Thursday"),
    ("We pay 40 euros a month for the internet", "The internet now costs us 55 euros a month"),
    ("Die Besprechung ist am Montag um 10 Uhr", "Die Besprechung wurde auf Dienstag verschoben"),
    ("Unser Hausarzt ist Dr. Weber", "Unser neuer Hausarzt ist Dr. Klein"),
    ("会议在星期一上午十点", "会议改到了星期三下午两点"),
    ("我们的数据库是MySQL", "我们的数据库换成了PostgreSQL"),
]
ADDITIONS = [
    ("The router is in the hallway", "The router was bought in 2021"),
    ("Paul is allergic to nuts", "Paula is allergic to cats"),
    ("Das Auto ist blau", "Das Auto muss im Mai zum TÜV"),
    ("Mein Bruder lebt in Wien", "Meine Schwester lebt in Graz"),
    ("我的车是蓝色的", "我的车五月要年检"),
    ("哥哥住在广州", "妹妹住在成都"),
]
AWKWARD = [
    ("", ""),
    ("", "The deploy key moved to vault B"),
    ("The deploy key is in vault A", " \n\t"),
    ("[SEP] [CLS] x", "[SEP]"),
    ("\x00\x01a", "emoji 😀👍 ok \u200b\ufeff"),
    ("x" * 5000, "word " * 5000),
    ("日本語 text テスト 한국어", "naïve café Übergröße İstanbul"),
]


def updates(*texts: tuple[str, str]) -> list[float]:
    return [verdict.updates for verdict in update_model.judge(texts)]


def test_four_probabilities_add_up_to_one() -> None:
    """Whatever the texts, however long or empty."""
    verdicts = update_model.judge([*UPDATES, *ADDITIONS, *AWKWARD])

    assert len(verdicts) == len(UPDATES) + len(ADDITIONS) + len(AWKWARD)
    for verdict in verdicts:
        assert isinstance(verdict, PairVerdict)
        assert all(0.0 <= share <= 1.0 for share in verdict)
        assert sum(verdict) == pytest.approx(1.0, abs=1e-5)


def test_nothing_to_judge_is_nothing_judged() -> None:
    """An empty batch of pairs."""
    assert update_model.judge([]) == []


def test_a_pair_is_judged_the_same_alone_and_in_a_batch() -> None:
    """In any order, and twice."""
    batch = [*UPDATES, *ADDITIONS, *AWKWARD, UPDATES[0]]
    together, reversed_ = update_model.judge(batch), update_model.judge(batch[::-1])[::-1]

    assert together[0] == together[-1]
    for pair, one, other in zip(batch, together, reversed_, strict=True):
        (alone,) = update_model.judge([pair])
        assert one == pytest.approx(alone, abs=1e-4)
        assert other == pytest.approx(alone, abs=1e-4)


def test_the_order_of_a_pair_matters() -> None:
    """The first text is the older one."""
    pair = ("I live in Berlin", "We moved from Berlin to Lisbon")
    newer_last, newer_first = updates(pair, pair[::-1])

    assert newer_last > newer_first + 0.2


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """With the first pair: creating the model reads nothing."""
    model = UpdateModel(tmp_path / "gone.npz")

    with pytest.raises(ModelError, match=r"gone\.npz"):
        model.judge(UPDATES[:1])


@pytest.mark.parametrize("keep", [0, 1, 1000, -1, -30])
def test_a_file_that_was_cut_off_is_damaged(tmp_path: Path, keep: int) -> None:
    """At its start, in the middle, by one byte."""
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(WEIGHTS.read_bytes()[:keep])

    with pytest.raises(ModelError, match=r"damaged\.npz"):
        UpdateModel(damaged).judge(UPDATES[:1])


@pytest.mark.parametrize("lost", ["types", "head.weight", "head.bias"])
def test_a_file_without_one_of_its_arrays_is_damaged(tmp_path: Path, lost: str) -> None:
    """As the encoder's file is: that knows one text only."""
    damaged = tmp_path / "damaged.npz"
    with np.load(WEIGHTS) as file:
        np.savez(damaged, **{name: file[name] for name in file.files if name != lost})

    with pytest.raises(ModelError, match=r"damaged\.npz"):
        UpdateModel(damaged).judge(UPDATES[:1])


@pytest.mark.parametrize("pair", [("\ud800", "a"), ("a", "b \udfff c")], ids=["older", "newer"])
def test_a_lone_surrogate_is_refused(pair: tuple[str, str]) -> None:
    """On either side."""
    with pytest.raises(BadText):
        update_model.judge([pair])


@pytest.mark.parametrize(
    ("text", "other"),
    [("供应商是腾飞", "供应商是鸿雁"), ("поставщик — Восток", "поставщик — Запад")],
    ids=["zh", "ru"],
)
def test_another_value_is_told_from_the_same_in_other_scripts(text: str, other: str) -> None:
    """Another value in them is another verdict than the same value."""
    same, changed = update_model.judge([(text, text), (text, other)])

    assert same.same > 0.5 > changed.same
    assert changed.updates > 0.4 > same.updates


def test_clear_cases_are_judged_right() -> None:
    """In English, German and Chinese; of twelve at most three are not."""
    wrong = [
        pair
        for expected, table in ((True, UPDATES), (False, ADDITIONS))
        for pair, sure in zip(table, updates(*table), strict=True)
        if (sure >= 0.5) is not expected
    ]

    assert len(wrong) <= 3, wrong


def share(table: str, least: float) -> float:
    sure = updates(*pairs(table))
    return sum(one >= least for one in sure) / len(sure)


def test_most_corrections_are_known_for_what_they_are() -> None:
    """Most put the newer one first; of some the model is certain."""
    assert share(SUPERSEDED, MIN_UPDATE) >= 0.85
    assert share(SUPERSEDED, MIN_SUPERSESSION) >= 0.5
    assert share(FLAGGED, MIN_UPDATE) >= 0.65


def test_traps_are_marked_far_more_rarely_than_corrections() -> None:
    """Written to mislead whoever goes by the words: both stay, so that a mark hides nothing."""
    assert share(TRAPS, MIN_SUPERSESSION) <= 0.2
    assert share(TRAPS, MIN_SUPERSESSION) <= 0.4 * share(SUPERSEDED, MIN_SUPERSESSION)
