"""Prompts: kept in files, filled in with what one space holds, quoted as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache

from recollect.errors import Refused
from recollect.ports import Prompt
from recollect.prompts.fence import RULE, code_for, entry, fenced
from recollect.prompts.passages import Passage, cited, passages_of
from recollect.prompts.schema import with_counts
from recollect.prompts.template import Template, load_template, put_in, template_names
from recollect.text import visible

Part = Sequence[Passage] | str | int | date
_CUT = " […]"

__all__ = ["Part", "Passage", "cited", "fill", "passages_of", "template_names"]

_loaded = cache(load_template)


def fill(name: str, space: str, /, **parts: Part) -> Prompt:
    """The prompt of that name with every place filled in, about one space.

    A passage of any other space is refused: no text of one space is ever shown to a
    model at work for another.
    """
    template = _loaded(name)
    declared = {*template.passages, *template.texts, *template.values}
    if wrong := declared.symmetric_difference(parts):
        raise TypeError(f"the prompt {name!r} has other places: {', '.join(sorted(wrong))}")
    passages = {name: _passages(parts[name], space) for name in template.passages}
    texts = {name: _text(parts[name]) for name in template.texts}
    return _filled(template, passages, texts, parts)


def _filled(
    template: Template,
    passages: Mapping[str, Sequence[Passage]],
    texts: Mapping[str, str],
    parts: Mapping[str, Part],
) -> Prompt:
    shown = {
        name: [_shown(passage.text, template) for passage in several]
        for name, several in passages.items()
    }
    alone = {name: _shown(text, template) for name, text in texts.items()}
    code = code_for([*alone.values(), *(text for several in shown.values() for text in several)])
    filling = {name: fenced(name, code, [text]) for name, text in alone.items()}
    for name, several in shown.items():
        heads = [_day(passage.when) if passage.when else "" for passage in passages[name]]
        entries = zip(heads, several, strict=True)
        lines = [entry(number, code, *pair) for number, pair in enumerate(entries, 1)]
        filling[name] = fenced(name, code, lines)
    filling |= {name: _value(parts[name]) for name in template.values}
    system = put_in(template.system, filling)
    return Prompt(
        template.name,
        template.version,
        f"{system}\n\n{RULE.format(code=code)}" if shown or alone else system,
        put_in(template.user, filling),
        with_counts(template.schema, {name: len(several) for name, several in passages.items()}),
        template.output_tokens,
    )


def _shown(text: str, template: Template) -> str:
    """The text as a model may see it: nothing hidden, not too long, a cut marked as such."""
    text = visible(text).encode(errors="replace").decode()
    return text if len(text) <= template.passage_chars else text[: template.passage_chars] + _CUT


def _passages(part: Part, space: str) -> Sequence[Passage]:
    if isinstance(part, str | int | date):
        raise TypeError("passages are wanted, not a single value")
    if any(passage.space != space for passage in part):
        raise Refused("a prompt about one space was given a text of another")
    return part


def _text(part: Part) -> str:
    if not isinstance(part, str):
        raise TypeError("a text is wanted")
    return part


def _value(part: Part) -> str:
    """Only what cannot carry words: it stands in the prompt unquoted."""
    if isinstance(part, bool) or not isinstance(part, int | date):
        raise TypeError("a number or a date is wanted")
    return _day(part) if isinstance(part, date) else str(part)


def _day(moment: date) -> str:
    return moment.isoformat()[:10]
