"""Finds which memories a question means by an id or by a part of their text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from recollect.eval.case import Question


def resolve(questions: tuple[Question, ...], texts: Mapping[str, str]) -> tuple[Question, ...]:
    """The questions with units for whatever they name; ``texts`` maps units to texts.

    An entry that is no unit stands for every memory whose text holds it, however
    it is spaced or capitalised. A question none of whose entries is found is left
    out; one that names nothing stays: it has no answer.
    """
    folded: dict[str, str] = {}
    kept = []
    for question in questions:
        if all(wanted in texts for wanted in question.relevant):
            kept.append(question)
            continue
        folded = folded or {unit: _fold(text) for unit, text in texts.items()}
        units: dict[str, float] = {}
        for wanted, gain in question.relevant.items():
            units.update(dict.fromkeys(_units(wanted, texts, folded), gain))
        if units:
            kept.append(replace(question, relevant=units))
    return tuple(kept)


def unknown(questions: tuple[Question, ...], texts: Mapping[str, str]) -> tuple[str, ...]:
    """What questions name that no memory is or holds: nobody could find it, and so it is
    not asked for. Each with its question, for whoever wrote it."""
    named = [(one, wanted) for one in questions for wanted in one.relevant if wanted not in texts]
    folded = {unit: _fold(text) for unit, text in texts.items()} if named else {}
    return tuple(
        f"{wanted!r} of {one.key}: {one.text}"
        for one, wanted in named
        if not _units(wanted, texts, folded)
    )


def _units(wanted: str, texts: Mapping[str, str], folded: Mapping[str, str]) -> list[str]:
    if wanted in texts:
        return [wanted]
    needle = _fold(wanted)
    return [unit for unit, text in folded.items() if needle and needle in text]


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())
