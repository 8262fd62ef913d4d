"""Answers of several profiles to one question: side by side, or place by place."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.cli.answers import score_of
from recollect.cli.printing import Piece, Printer, bold, dim, one_line, plural, yellow
from recollect.cli.tables import Column, print_table
from recollect.model import Candidate, Recall

# More columns of text than this cannot be read in 80 characters.
_SIDE_BY_SIDE = 3
_RRF_K = 60


def print_comparison(out: Printer, answers: Mapping[str, Recall]) -> None:
    """Few profiles with their texts side by side, more of them place by place."""
    found = {name: [hit.item.id for hit in answer.hits] for name, answer in answers.items()}
    shared = set.intersection(*(set(ids) for ids in found.values())) if found else set()
    if any(found.values()):
        if len(answers) <= _SIDE_BY_SIDE:
            _print_texts(out, answers, shared)
        else:
            _print_places(out, answers, shared)
    for name, answer in answers.items():
        if not answer.hits:
            out.line(yellow(name), f": {answer.reason}")
        for part in answer.degraded:
            out.line(yellow(f"{name} degraded:"), f" {part.part}: {part.reason}")
    if any(found.values()):
        out.block(dim(_agreement(found, shared)))


def _print_texts(out: Printer, answers: Mapping[str, Recall], shared: set[str]) -> None:
    """A column a profile; what only some of them found is marked."""
    heads = [Column("#", right=True), *(Column(name, wide=True) for name in answers)]
    depth = max(len(answer.hits) for answer in answers.values())
    rows = [
        (str(place + 1), *(_cell(answer, place, shared) for answer in answers.values()))
        for place in range(depth)
    ]
    print_table(out, heads, rows)


def _cell(answer: Recall, place: int, shared: set[str]) -> Piece:
    if place >= len(answer.hits):
        return ""
    hit = answer.hits[place]
    only = "" if hit.item.id in shared else "* "
    told = f"{only}{score_of(hit)} {one_line(hit.item.text, 120)} [{hit.item.id}]"
    return told if hit.item.id in shared else yellow(told)


def _print_places(out: Printer, answers: Mapping[str, Recall], shared: set[str]) -> None:
    """A line a memory: its place in every profile's answer; the most agreed on first."""
    legend = "   ".join(f"{number} {name}" for number, name in enumerate(answers, 1))
    out.block(bold(legend))
    if not out.terminal:
        out.line()
    places: dict[str, dict[str, int]] = {}
    hits: dict[str, Candidate] = {}
    for name, answer in answers.items():
        for place, hit in enumerate(answer.hits, answer.page.offset + 1):
            hits.setdefault(hit.item.id, hit)
            places.setdefault(hit.item.id, {})[name] = place
    agreed = sorted(hits, key=lambda one: (-_agreed(places[one]), one))
    heads = [Column(str(number), right=True) for number in range(1, len(answers) + 1)]
    rows = [
        (
            *(str(places[one].get(name, "·")) for name in answers),
            _told(hits[one], everyone=one in shared),
        )
        for one in agreed
    ]
    print_table(out, [*heads, Column("memory", wide=True)], rows)


def _agreed(places: Mapping[str, int]) -> float:
    """How high a memory stands over all answers (reciprocal rank fusion)."""
    return sum(1 / (_RRF_K + place) for place in places.values())


def _told(hit: Candidate, *, everyone: bool) -> Piece:
    told = f"{one_line(hit.item.text, 120)} [{hit.item.id}]"
    return bold(told) if everyone else told


def _agreement(found: Mapping[str, list[str]], shared: set[str]) -> str:
    if len(found) < 2:
        return plural(sum(map(len, found.values())), "memory")
    if len(found) > _SIDE_BY_SIDE:
        every = {item for ids in found.values() for item in ids}
        return f"found by all: {len(shared)} of {len(every)}; · not found"
    own = ", ".join(
        f"{name} alone {len([i for i in ids if i not in shared])}" for name, ids in found.items()
    )
    return f"found by all: {len(shared)}; * not by all: {own}"
