"""Answers as text, section by section, for a model or a pipe.

A memory's text is shown as data: on one line, so that nothing in it can pass for a heading
or for another memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from bethink.core.characters import strip_hidden
from bethink.core.dataclass import dataclass
from bethink.core.json_values import format_moment
from bethink.model import Candidate, Item, Pool, Recall, Relation

UNSURE_NOTICE = "May be related:"
_PREVIEW_CHARS = 160  # characters of a memory that is only pointed at
_MAX_ENTITY_IDS = 10  # memories named with an entity


@dataclass(frozen=True, slots=True)
class Section:
    """One section of an answer's text, omitted where it would be empty.

    ``levels`` selects the memories (where "show" is "memories"); all where none are named.
    Style "block" gives a memory several lines, "line" one, "dated" its day and text,
    "plain" its text alone.
    ``by_topic`` groups them by topic, unless the query filters by one; ``kinds`` is the
    order of kinds for a query without words.
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


def render_text(answer: Recall, sections: Sequence[Section] = SECTIONS) -> str:
    """Render an answer as text; ``Profile.text`` holds a profile's sections."""
    parts = []
    for section in sections or SECTIONS:
        lines = list(_RENDERERS[section.show](answer, section))
        if lines:
            parts.append("\n".join([section.heading, *lines] if section.heading else lines))
    if answer.hits and answer.status == "unsure":
        parts.insert(0, UNSURE_NOTICE)
    if not answer.hits:
        parts.insert(0, f"(nothing recalled: {_escape_line(answer.reason)})")
    parts += [f"(without {part.part}: {_escape_line(part.reason)})" for part in answer.degraded]
    return "\n\n".join(parts) + "\n"


def _render_memories(answer: Recall, section: Section) -> Iterator[str]:
    hits = tuple(
        hit for hit in answer.hits if not section.levels or hit.item.level in section.levels
    )
    groups: list[tuple[str, Pool]] = [("", hits)]
    if section.kinds and not answer.query.text.strip():
        groups = _groups_by_kind(hits, section.kinds)
    elif section.by_topic and not answer.query.filters.topics:
        groups = _groups_by_topic(hits)
    for title, group in groups:
        if title:
            yield f"## {title}"
        yield from _render_hits(group, answer, section)


def _render_hits(hits: Pool, answer: Recall, section: Section) -> Iterator[str]:
    for hit in hits:
        relations = relations_of_hit(answer, hit)
        yield from (
            _render_block(hit, relations)
            if section.style == "block"
            else _render_line(hit, relations, section)
        )


def relations_of_hit(answer: Recall, hit: Candidate) -> list[Relation]:
    """Contradictions and corrections of one of the hits."""
    return [relation for relation in answer.relations if relation.item == hit.item.id]


def _groups_by_kind(hits: Pool, kinds: Sequence[str]) -> list[tuple[str, Pool]]:
    """The memories of each kind: first these kinds, then the others by name."""
    found = {hit.item.kind for hit in hits}
    ordered = [*(kind for kind in kinds if kind in found), *sorted(found.difference(kinds))]
    return [
        (_escape_line(kind), tuple(hit for hit in hits if hit.item.kind == kind))
        for kind in ordered
    ]


def _groups_by_topic(hits: Pool) -> list[tuple[str, Pool]]:
    """The memories of each topic, that of the best one first; no titles without any topic."""
    topics = dict.fromkeys(hit.item.topic for hit in hits)
    if not any(topics):
        return [("", hits)]
    return [
        (
            f"Topic: {_escape_line(topic)}" if topic else "General",
            tuple(hit for hit in hits if hit.item.topic == topic),
        )
        for topic in topics
    ]


def _render_line(hit: Candidate, relations: Sequence[Relation], section: Section) -> Iterator[str]:
    item = hit.item
    labels = {"plain": [], "dated": [format_moment(item.when)]}.get(section.style)
    marks = map(_escape_line, hit.marks)
    prefix = ", ".join([*(_item_labels(item) if labels is None else labels), *marks])
    prefix = f"[{prefix}] " if prefix else ""
    yield f"{section.mark} {prefix}{_hit_line(hit)}"
    yield from (f"  {line}" for line in relation_lines(relations))


def _render_block(hit: Candidate, relations: Sequence[Relation]) -> Iterator[str]:
    item = hit.item
    labels = [*_item_labels(item), f"confidence {item.confidence:.2f}", *_association_label(hit)]
    labels += map(_escape_line, hit.marks)
    title = item.caption or hit.marked_text
    yield f"[{item.id}] {_escape_line(title)} ({', '.join(labels)})"
    if item.caption and item.caption != item.text:
        yield f"  {_hit_line(hit)}"
    if not any(relation.type == "contradicts" for relation in relations):
        yield "  Contradictions: (none)"
    yield from (f"  {line}" for line in relation_lines(relations))
    if item.entities:
        yield f"  Entities: {', '.join(map(_escape_line, item.entities))}"
    yield f"  Source: {_escape_line(item.source)}"


def _hit_line(hit: Candidate) -> str:
    """The text of a hit on one line; of an insight its points one after the other."""
    if hit.item.level != "insight":
        return _escape_line(hit.marked_text)
    lines = (line.strip().removeprefix("- ") for line in hit.marked_text.splitlines())
    return "; ".join(_escape_line(line) for line in lines if line)


def _item_labels(item: Item) -> Iterator[str]:
    yield _escape_line(item.kind)
    yield format_moment(item.when)
    if item.speaker:
        yield _escape_line(item.speaker)
    if item.trust == 0:
        yield "untrusted source"
    if item.flags:
        yield f"flagged: {' '.join(map(_escape_line, item.flags))}"


def _association_label(hit: Candidate) -> Iterator[str]:
    """How a memory that no retriever found by itself entered the answer."""
    if any(reason.by.startswith("channel.") for reason in hit.evidence):
        return
    last = next((reason for reason in reversed(hit.evidence) if reason.via), None)
    if last is not None:
        yield "via entity match" if last.by.startswith("entity") else "via association"


def relation_lines(relations: Sequence[Relation]) -> Iterator[str]:
    """Contradictions and corrections from the memory's side, one line each."""
    for relation in relations:
        arrow, name = _RELATION_LABELS.get(
            (relation.type, relation.inbound), ("←" if relation.inbound else "→", "")
        )
        label = name or _escape_line(relation.type)
        yield f"{arrow} {label} [{relation.other}]: {_preview(relation.text)}"


_RELATION_LABELS = {
    ("contradicts", False): ("→", "contradicts"),
    ("contradicts", True): ("←", "contradicted by"),
    ("supersedes", False): ("→", "supersedes"),
    ("supersedes", True): ("→", "SUPERSEDED BY"),
}


def _render_entities(answer: Recall, section: Section) -> Iterator[str]:
    """Entities matched by the question, each with the memories found through it."""
    ids_by_entity: dict[str, list[str]] = {}
    requested = set(answer.query.filters.entities)
    for hit in answer.hits:
        matched = {reason.via for reason in hit.evidence} | requested
        for entity in hit.item.entities:
            if entity in matched:
                ids_by_entity.setdefault(entity, []).append(f"[{hit.item.id}]")
    for entity, ids in ids_by_entity.items():
        yield f"{section.mark} {_escape_line(entity)}: {', '.join(ids[:_MAX_ENTITY_IDS])}"


def _render_timelines(answer: Recall, section: Section) -> Iterator[str]:
    moments = {hit.item.id: format_moment(hit.item.when) for hit in answer.hits}
    for line in answer.timelines:
        order = " → ".join(f"{moments.get(item, '')} [{item}]".strip() for item in line.items)
        yield f"{section.mark} {_escape_line(line.subject)}: {order}"


def _texts(texts: Callable[[Recall], Iterable[str]]) -> Callable[[Recall, Section], Iterator[str]]:
    """Render a part of the answer that is a list of texts."""
    return lambda answer, section: (
        f"{section.mark} {_escape_line(text)}" for text in texts(answer)
    )


_RENDERERS: dict[str, Callable[[Recall, Section], Iterator[str]]] = {
    "memories": _render_memories,
    "captions": _texts(lambda answer: [caption.text for caption in answer.captions]),
    "entities": _render_entities,
    "timelines": _render_timelines,
    "evidences": _texts(lambda answer: answer.evidences),
    "warnings": _texts(lambda answer: answer.warnings),
}


def _escape_line(text: str) -> str:
    """A text on one line without hidden characters; line breaks are written as escapes."""
    escaped = strip_hidden(text).strip()
    if "\n" in escaped or "\t" in escaped:
        escaped = escaped.translate(_LINE_BREAK_ESCAPES)
    return escaped


_LINE_BREAK_ESCAPES = str.maketrans({"\n": "\\n", "\t": "\\t"})


def _preview(text: str) -> str:
    escaped = _escape_line(text)
    return (
        escaped if len(escaped) <= _PREVIEW_CHARS else escaped[: _PREVIEW_CHARS - 1].rstrip() + "…"
    )
