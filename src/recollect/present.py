"""An answer as text, section by section, for a reader that takes text: a model, a pipe.

What a memory says is shown as data: on one line, whatever it holds, so that nothing in
it can pass for a heading or for another memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from recollect.model import Candidate, Item, Pool, Recall, Relation
from recollect.text import visible

_TOLD = 160  # characters of a memory that is only pointed at
_MOST_IDS = 10  # memories named with an entity


@dataclass(frozen=True, slots=True)
class Section:
    """One part of an answer's text, left out where it would be empty.

    ``levels`` says which memories ("show" is then "memories"); all where none are
    named. "block" gives a memory several lines, "line" one, "dated" its day and its
    words, "plain" its words alone.
    ``by_topic`` puts them under their topics, unless the question named one;
    ``kinds`` orders what a question without words returned.
    """

    heading: str = ""
    show: Literal["memories", "captions", "entities", "timelines", "evidences", "warnings"] = (
        "memories"
    )
    levels: tuple[str, ...] = ()
    style: Literal["block", "line", "dated", "plain"] = "line"
    mark: str = "•"
    by_topic: bool = False
    kinds: tuple[str, ...] = ()


SECTIONS = (
    Section("INSIGHTS:", levels=("insight",)),
    Section("MEMORIES:", levels=("item",)),
    Section("EPISODES:", levels=("raw",)),
    Section("CAPTIONS:", show="captions"),
    Section("TIMELINES:", show="timelines"),
    Section("EVIDENCE:", show="evidences"),
    Section("WARNINGS:", show="warnings"),
)


def present(answer: Recall, sections: Sequence[Section] = SECTIONS) -> str:
    """The answer's text; ``Profile.text`` holds the sections a profile asks for."""
    parts = []
    for section in sections or SECTIONS:
        lines = list(_SHOWN[section.show](answer, section))
        if lines:
            parts.append("\n".join([section.heading, *lines] if section.heading else lines))
    if not answer.hits:
        parts.insert(0, f"(nothing recalled: {_data(answer.reason)})")
    parts += [f"(without {part.part}: {_data(part.reason)})" for part in answer.degraded]
    return "\n\n".join(parts) + "\n"


def _memories(answer: Recall, section: Section) -> Iterator[str]:
    hits = tuple(
        hit for hit in answer.hits if not section.levels or hit.item.level in section.levels
    )
    if section.kinds and not answer.query.text.strip():
        yield from _grouped(hits, answer, section, _kind_heading, _place_of_kind(section.kinds))
    elif section.by_topic and not answer.query.filters.topics and _topics(hits):
        yield from _grouped(hits, answer, section, _topic_heading, _first_place(hits))
    else:
        yield from _listed(hits, answer, section)


def _listed(hits: Pool, answer: Recall, section: Section) -> Iterator[str]:
    for hit in hits:
        told = related(answer, hit)
        yield from _block(hit, told) if section.style == "block" else _line(hit, told, section)


def related(answer: Recall, hit: Candidate) -> list[Relation]:
    """Contradictions and corrections of one of the hits."""
    return [told for told in answer.relations if told.item == hit.item.id]


def _grouped(
    hits: Pool,
    answer: Recall,
    section: Section,
    heading: Callable[[Item], str],
    place: Callable[[Item], object],
) -> Iterator[str]:
    # Stable: within its group a memory keeps its place.
    ordered = sorted(hits, key=lambda hit: place(hit.item))  # type: ignore[arg-type,return-value]
    for title, group in groupby(ordered, key=lambda hit: heading(hit.item)):
        yield f"## {title}"
        yield from _listed(tuple(group), answer, section)


def _kind_heading(item: Item) -> str:
    return _data(item.kind)


def _topic_heading(item: Item) -> str:
    return f"Topic: {_data(item.topic)}" if item.topic else "General"


def _place_of_kind(kinds: Sequence[str]) -> Callable[[Item], tuple[int, str]]:
    places = {kind: place for place, kind in enumerate(kinds)}
    return lambda item: (places.get(item.kind, len(places)), item.kind)


def _first_place(hits: Pool) -> Callable[[Item], int]:
    """Topics in the order of their best memory."""
    places: dict[str | None, int] = {}
    for place, hit in enumerate(hits):
        places.setdefault(hit.item.topic, place)
    return lambda item: places[item.topic]


def _topics(hits: Pool) -> bool:
    return any(hit.item.topic for hit in hits)


def _line(hit: Candidate, told: Sequence[Relation], section: Section) -> Iterator[str]:
    item = hit.item
    known = {"plain": [], "dated": [f"{item.when:%Y-%m-%d}"]}.get(section.style)
    about = ", ".join(_about(item) if known is None else known)
    about = f"[{about}] " if about else ""
    yield f"{section.mark} {about}{_data(item.text)}"
    yield from (f"  {line}" for line in relation_lines(told))


def _block(hit: Candidate, told: Sequence[Relation]) -> Iterator[str]:
    item = hit.item
    about = [*_about(item), f"confidence {item.confidence:.2f}", *_via(hit)]
    title = item.caption or item.text
    yield f"[{item.id}] {_data(title)} ({', '.join(about)})"
    if item.caption and item.caption != item.text:
        yield f"  {_data(item.text)}"
    if not any(one.type == "contradicts" for one in told):
        yield "  Contradictions: (none)"
    yield from (f"  {line}" for line in relation_lines(told))
    if item.entities:
        yield f"  Entities: {', '.join(map(_data, item.entities))}"
    yield f"  Source: {_data(item.source)}"


def _about(item: Item) -> Iterator[str]:
    yield _data(item.kind)
    yield f"{item.when:%Y-%m-%d}"
    if item.speaker:
        yield _data(item.speaker)
    if item.trust == 0:
        yield "untrusted source"
    if item.flags:
        yield f"flagged: {' '.join(map(_data, item.flags))}"


def _via(hit: Candidate) -> Iterator[str]:
    """How a memory came in that no channel found by itself."""
    if any(reason.by.startswith("channel.") for reason in hit.evidence):
        return
    last = next((reason for reason in reversed(hit.evidence) if reason.via), None)
    if last is not None:
        yield "via entity match" if last.by.startswith("entity") else "via association"


def relation_lines(told: Sequence[Relation]) -> Iterator[str]:
    """Contradictions and corrections from the memory's side, a line each."""
    for one in told:
        arrow, name = _SIDES.get((one.type, one.inbound), ("←" if one.inbound else "→", ""))
        yield f"{arrow} {name or _data(one.type)} [{one.other}]: {_cut(one.text)}"


_SIDES = {
    ("contradicts", False): ("→", "contradicts"),
    ("contradicts", True): ("←", "contradicted by"),
    ("supersedes", False): ("→", "supersedes"),
    ("supersedes", True): ("→", "SUPERSEDED BY"),
}


def _captions(answer: Recall, section: Section) -> Iterator[str]:
    yield from (f"{section.mark} {_data(caption.text)}" for caption in answer.captions)


def _entities(answer: Recall, section: Section) -> Iterator[str]:
    """Whom and what the question met, each with the memories that came of it."""
    met: dict[str, list[str]] = {}
    asked = set(answer.query.filters.entities)
    for hit in answer.hits:
        through = {reason.via for reason in hit.evidence} | asked
        for entity in hit.item.entities:
            if entity in through:
                met.setdefault(entity, []).append(f"[{hit.item.id}]")
    for entity, ids in met.items():
        yield f"{section.mark} {_data(entity)}: {', '.join(ids[:_MOST_IDS])}"


def _timelines(answer: Recall, section: Section) -> Iterator[str]:
    days = {hit.item.id: f"{hit.item.when:%Y-%m-%d}" for hit in answer.hits}
    for line in answer.timelines:
        order = " → ".join(f"{days.get(item, '')} [{item}]".strip() for item in line.items)
        yield f"{section.mark} {_data(line.subject)}: {order}"


def _evidences(answer: Recall, section: Section) -> Iterator[str]:
    yield from (f"{section.mark} {_data(told)}" for told in answer.evidences)


def _warnings(answer: Recall, section: Section) -> Iterator[str]:
    yield from (f"{section.mark} {_data(told)}" for told in answer.warnings)


_SHOWN: dict[str, Callable[[Recall, Section], Iterator[str]]] = {
    "memories": _memories,
    "captions": _captions,
    "entities": _entities,
    "timelines": _timelines,
    "evidences": _evidences,
    "warnings": _warnings,
}


def _data(text: str) -> str:
    """A text on one line, nothing in it hidden; its own line ends are written out."""
    shown = visible(text).strip()
    if "\n" in shown or "\t" in shown or "\u2028" in shown or "\u2029" in shown:
        shown = shown.translate(_WRITTEN_OUT)
    return shown


_WRITTEN_OUT = str.maketrans({"\n": "\\n", "\t": "\\t", "\u2028": "\\n", "\u2029": "\\n"})


def _cut(text: str) -> str:
    shown = _data(text)
    return shown if len(shown) <= _TOLD else shown[: _TOLD - 1].rstrip() + "…"
