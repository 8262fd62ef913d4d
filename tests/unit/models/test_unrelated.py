"""Where the scale of a model's cosines begins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bethink.errors import ModelError
from bethink.models.embed.hashing import HashEmbedder
from bethink.models.embed.served import (
    BASELINES_FILE,
    SimilarityBaseline,
    measure_baseline,
    unrelated_texts,
)
from rows import each_row


class Asked:
    """Measures what it was told, and counts how often."""

    def __init__(self, begins: float | ModelError) -> None:
        self.begins, self.times = begins, 0

    def __call__(self) -> float:
        self.times += 1
        if isinstance(self.begins, ModelError):
            raise self.begins
        return self.begins


def scale(ask: Asked, cache: Path, model: str = "served:small:384") -> SimilarityBaseline:
    return SimilarityBaseline(lambda: model, ask, cache=cache)


def test_it_is_the_same_whoever_asks() -> None:
    """A model's scale does not depend on the run."""
    assert measure_baseline(HashEmbedder()) == measure_baseline(HashEmbedder())


def test_no_question_is_about_any_statement() -> None:
    """Subjects are told by their longer words: none is shared."""

    def subjects(texts: list[str]) -> set[str]:
        words = " ".join(texts).casefold().replace("?", " ").replace(".", " ").split()
        return {word for word in words if len(word) > 5}

    questions, statements = unrelated_texts()
    assert len(questions) == len(statements) == 12
    assert not subjects(questions) & subjects(statements)


def test_a_model_is_measured_once_on_a_machine(tmp_path: Path) -> None:
    """Every later process reads what the first one found; another model is asked itself."""
    first, second, other = Asked(0.4), Asked(0.7), Asked(0.2)

    begins = scale(first, tmp_path)
    assert (begins(), begins()) == (0.4, 0.4)
    assert scale(second, tmp_path)() == 0.4
    assert scale(other, tmp_path, "served:large:1024")() == 0.2
    assert scale(second, tmp_path)() == 0.4

    assert (first.times, second.times, other.times) == (1, 0, 1)


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_what_was_measured_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Which models somebody uses is nobody else's business."""
    scale(Asked(0.4), tmp_path / "new")()

    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / BASELINES_FILE).stat().st_mode & 0o777 == 0o600


@each_row(
    "kept",
    ["", "[]", "{", '{"served:small:384": "0.4"}', '{"served:small:384": NaN}',
     '{"served:small:384": 7.5}', '{"served:small:384": true}', "[" * 100_000],
)  # fmt: skip
def test_what_cannot_be_believed_is_measured_again(tmp_path: Path, kept: str) -> None:
    """A damaged file costs a measurement and nothing else."""
    (tmp_path / BASELINES_FILE).write_text(kept)
    ask = Asked(0.4)

    assert scale(ask, tmp_path)() == 0.4
    assert ask.times == 1
    assert scale(Asked(0.1), tmp_path)() == 0.4


def test_without_a_place_for_it_every_process_measures(tmp_path: Path) -> None:
    """A cache that cannot be written is no failure."""
    (tmp_path / "file").write_text("")
    ask = Asked(0.4)

    assert scale(ask, tmp_path / "file")() == 0.4


def test_a_failed_measurement_does_not_hold_up_the_next_question(tmp_path: Path) -> None:
    """It is answered with the same failure, and not tried again for a while."""
    ask = Asked(ModelError("the server is slow"))
    begins = scale(ask, tmp_path)

    for _ in range(3):
        with pytest.raises(ModelError, match="the server is slow"):
            begins()

    assert ask.times == 1
    assert not (tmp_path / BASELINES_FILE).exists()


def test_a_model_that_finds_everything_alike_has_a_scale_too(tmp_path: Path) -> None:
    """Nobody divides by nothing."""
    assert scale(Asked(1.0), tmp_path)() < 1.0
