"""Several memories in one text: by rules, in their own words, or by a language model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from recollect.errors import ModelError
from recollect.maintain.job import Work
from recollect.model import Item
from recollect.prompts import cited, fill, passages_of
from recollect.text import caption, fold, sentences, shorten, visible, word_set

RULES = "rules"
TYPICAL = "Typical: "  # how the line begins that says what most of them say
SECRET = 3  # never shown to a model
EXEMPLARS = 3
EXEMPLAR_CHARACTERS = 200
DETAIL_CHARACTERS = 600
BRIEF_CHARACTERS = 1_500
BRIEF_LEAST = 60
_DETAIL = re.compile(r"\S*\d\S*|\S+[_/.:@#]\w\S*|[A-Z][\w'’-]*[A-Z]\w*|(?<=[a-z,;] )[A-Z]\w+")
_TRIM = "\"'`()[]{}<>,;:!?…"
_FIGURE = re.compile(r"\d+(?:[.,:/-]\d+)*")
_MOST_SENTENCES = 400


class Condensed(NamedTuple):
    """One text for several memories, who wrote it, and which of them it holds."""

    text: str
    made_by: str
    holds: tuple[str, ...]
    remark: str = ""


def condense(subject: str, items: Sequence[Item], work: Work) -> Condensed:
    """One text for memories of one subject: by the model where there is one that does,
    else by rules. A model sees nothing secret, and is believed only where what it says
    stands on what it was shown."""
    if work.model is None or any(item.classification >= SECRET for item in items):
        return by_rules(subject, items)
    try:
        return _by_model(subject, items, work)
    except ModelError as error:
        return by_rules(subject, items)._replace(remark=f"by rules: {error.message}")


def by_rules(subject: str, items: Sequence[Item]) -> Condensed:
    """What is most typical of them, some in full, the others in brief, and whatever names
    and numbers that leaves out: what was found by its words before is found by them still."""
    chosen = exemplars(items)
    first, last = min(item.when for item in items), max(item.when for item in items)
    days = dict.fromkeys((f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"))
    lines = [f"{len(items)} memories about {subject}, {' to '.join(days)}."]
    typical = central_sentence(items)
    if typical:
        lines.append(f"{TYPICAL}{typical}")
    lines += [f"- {quoted(item)}" for item in chosen]
    lines += _in_brief([item for item in items if item not in chosen])
    details = _details(items, " ".join(lines))
    if details:
        lines.append(f"Also: {', '.join(details)}")
    return Condensed("\n".join(lines), RULES, tuple(item.id for item in items))


def exemplars(items: Sequence[Item], count: int = EXEMPLARS) -> list[Item]:
    """The most important ones, in the order of time."""
    best = sorted(items, key=lambda item: (-item.importance, item.when, item.id))[:count]
    return sorted(best, key=lambda item: (item.when, item.id))


def quoted(item: Item, limit: int = EXEMPLAR_CHARACTERS) -> str:
    """A memory on one line, with its day, cut at a word."""
    line = " ".join(visible(item.text).split())
    return f"{item.when:%Y-%m-%d}: {shorten(line, limit)}"


def _in_brief(items: Sequence[Item]) -> list[str]:
    if not items:
        return []
    room = max(BRIEF_LEAST, BRIEF_CHARACTERS // len(items))
    in_order = sorted(items, key=lambda item: (item.when, item.id))
    return [f"In brief: {'; '.join(_brief(item, room) for item in in_order)}"]


def _brief(item: Item, room: int) -> str:
    return caption(item.text, limit=room).rstrip(".")


def central_sentence(items: Sequence[Item]) -> str:
    """The sentence whose words most of the memories share; none where they share nothing."""
    told = [(one, word_set(one)) for item in items for one in sentences(visible(item.text))]
    told = told[:_MOST_SENTENCES]
    holding = Counter(word for item in items for word in word_set(item.text))
    best, most = "", 0.0
    for sentence, words in told:
        if len(words) < 3:
            continue
        shared = sum(holding[word] - 1 for word in words) / (len(words) + 4)
        if shared > most:
            best, most = sentence, shared
    return shorten(" ".join(best.split()), EXEMPLAR_CHARACTERS)


def _details(items: Sequence[Item], said: str) -> list[str]:
    """Names, numbers, paths and versions that the text so far has not, for finding by."""
    there = fold(said)
    kept: dict[str, str] = {}
    room = DETAIL_CHARACTERS
    for item in sorted(items, key=lambda one: (one.when, one.id)):
        for detail in _DETAIL.findall(visible(item.text)):
            shown = detail.strip(_TRIM).rstrip(".")
            key = fold(shown)
            if len(shown) < 2 or key in kept or key in there or len(shown) + 2 > room:
                continue
            kept[key] = shown
            room -= len(shown) + 2
    return list(kept.values())


def _by_model(subject: str, items: Sequence[Item], work: Work) -> Condensed:
    assert work.model is not None
    passages = passages_of(work.store, [item.id for item in items])
    prompt = fill("summarise", work.store.space, memories=passages)
    answer = work.model.complete(prompt, budget=work.budget)
    left_out = set(cited(passages, answer["left_out"]))
    holds = tuple(one for one in cited(passages, answer["sources"]) if one not in left_out)
    text = f"{answer['title'].strip()}\n{answer['learning'].strip()}"
    by_id = {item.id: item for item in items}
    held = [by_id[one] for one in holds if one in by_id]
    if stray := next(invented(text, held), None):
        told = by_rules(subject, held or items)
        return told._replace(remark=f"by rules: the model brought in {stray!r:.40}")
    return Condensed(text, work.model.name, holds)


def invented(text: str, sources: Iterable[Item]) -> Iterator[str]:
    """Numbers of a text that none of its sources holds: what a summary must not bring in."""
    known = {
        figure
        for item in sources
        for figure in _FIGURE.findall(f"{item.text} {item.when:%Y-%m-%d}")
    }
    parts = {part for figure in known for part in re.split(r"\D+", figure)}
    for figure in _FIGURE.findall(text):
        if figure not in known and not parts.issuperset(re.split(r"\D+", figure)):
            yield figure
