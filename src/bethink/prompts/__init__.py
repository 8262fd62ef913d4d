"""Prompts: stored in files, filled with the data of one space, fenced as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache

from bethink.core.characters import strip_hidden
from bethink.core.json_schema import with_counts
from bethink.errors import Refused
from bethink.ports import Prompt
from bethink.prompts.template import (
    FENCE_RULE,
    Passage,
    Template,
    cited_ids,
    fence_code,
    fence_lines,
    format_entry,
    load_passages,
    load_template,
    substitute,
    template_names,
)

__all__ = ["Part", "Passage", "cited_ids", "fill_prompt", "load_passages", "template_names"]


Part = Sequence[Passage] | str | int | date
_TRUNCATION_MARK = " […]"

_cached_template = cache(load_template)


def fill_prompt(name: str, space: str, /, **parts: Part) -> Prompt:
    """Fill every placeholder of the named prompt with data of one space.

    A passage of another space is refused: no text of one space is ever shown to a model
    that works for another.
    """
    template = _cached_template(name)
    declared = {*template.passages, *template.texts, *template.values}
    if wrong := declared.symmetric_difference(parts):
        raise TypeError(f"the prompt {name!r} needs other parts; check: {', '.join(sorted(wrong))}")
    passages = {name: _check_passages(parts[name], space) for name in template.passages}
    texts = {name: _check_text(parts[name]) for name in template.texts}
    return _build_prompt(template, passages, texts, parts)


def _build_prompt(
    template: Template,
    passages: Mapping[str, Sequence[Passage]],
    texts: Mapping[str, str],
    parts: Mapping[str, Part],
) -> Prompt:
    shown = {
        name: [_prepare_text(passage.text, template) for passage in several]
        for name, several in passages.items()
    }
    alone = {name: _prepare_text(text, template) for name, text in texts.items()}
    code = fence_code([*alone.values(), *(text for several in shown.values() for text in several)])
    filling = {name: fence_lines(name, code, [text]) for name, text in alone.items()}
    for name, several in shown.items():
        heads = [_format_day(passage.when) if passage.when else "" for passage in passages[name]]
        entries = zip(heads, several, strict=True)
        lines = [format_entry(number, code, *pair) for number, pair in enumerate(entries, 1)]
        filling[name] = fence_lines(name, code, lines)
    filling |= {name: _format_value(parts[name]) for name in template.values}
    system = substitute(template.system, filling)
    return Prompt(
        template.name,
        template.version,
        f"{system}\n\n{FENCE_RULE.format(code=code)}" if shown or alone else system,
        substitute(template.user, filling),
        with_counts(template.schema, {name: len(several) for name, several in passages.items()}),
        template.output_tokens,
    )


def _prepare_text(text: str, template: Template) -> str:
    """The text as a model may see it: no hidden characters, truncated with a mark."""
    text = strip_hidden(text).encode(errors="replace").decode()
    return (
        text
        if len(text) <= template.passage_chars
        else text[: template.passage_chars] + _TRUNCATION_MARK
    )


def _check_passages(part: Part, space: str) -> Sequence[Passage]:
    if isinstance(part, str | int | date):
        raise TypeError("expected a list of passages, not a single value")
    if any(passage.space != space for passage in part):
        raise Refused("the prompt is for one space, but a text is from another")
    return part


def _check_text(part: Part) -> str:
    if not isinstance(part, str):
        raise TypeError("expected a text")
    return part


def _format_value(part: Part) -> str:
    """Format a number or date: values that cannot carry words appear unquoted."""
    if isinstance(part, bool) or not isinstance(part, int | date):
        raise TypeError("expected a number or a date")
    return _format_day(part) if isinstance(part, date) else str(part)


def _format_day(moment: date) -> str:
    return moment.isoformat()[:10]
