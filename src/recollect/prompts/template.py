"""A prompt as its file has it: a head of settings, the standing part, the part to fill in.

The three are set apart by lines of three dashes. Beside it lies the JSON file of the
answer's schema, named after the prompt unless the head says otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.errors import NotFound, RecollectError
from recollect.prompts.schema import Misfit, check_schema

_FOLDER = Path(__file__).parent
_SLOT = re.compile(r"\{\{(\w+)\}\}")
_NUMBERS = ("version", "output_tokens", "passage_chars")
_PLACES = ("passages", "texts", "values")
_KEYS = ("name", *_NUMBERS, *_PLACES)


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with its places still empty.

    ``passages`` take numbered texts, ``texts`` one text each, both quoted as data;
    ``values`` take numbers and dates. A quoted text is cut at ``passage_chars``.
    """

    name: str
    version: int
    output_tokens: int
    passage_chars: int
    passages: tuple[str, ...]
    texts: tuple[str, ...]
    values: tuple[str, ...]
    system: str
    user: str
    schema: Mapping[str, Any]


def template_names() -> tuple[str, ...]:
    """The prompts there are."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.md")))


def load_template(name: str) -> Template:
    """The prompt of that name, read and checked."""
    if name not in template_names():
        raise NotFound(f"there is no prompt {name!r}", remedy=", ".join(template_names()))
    text = (_FOLDER / f"{name}.md").read_text(encoding="utf-8")
    head, _, _ = text.removeprefix("---\n").partition("\n---\n")
    schema_name = _settings(head, name).get("schema", name)
    schema = (_FOLDER / f"{schema_name}.json").read_text(encoding="utf-8")
    return parse_template(name, text, schema)


def parse_template(name: str, text: str, schema_text: str) -> Template:
    """A prompt from the texts of its two files; what is wrong with them is said by name."""
    parts = text.removeprefix("---\n").split("\n---\n")
    if not text.startswith("---\n") or len(parts) != 3:
        raise _bad(name, "needs a head, a standing part and a part to fill in")
    settings = _settings(parts[0], name)
    if missing := [key for key in _KEYS if key not in settings]:
        raise _bad(name, f"has no {', '.join(missing)} in its head")
    try:
        numbers = {key: int(settings[key]) for key in _NUMBERS}
        schema = json.loads(schema_text)
    except ValueError as error:
        raise _bad(name, f"cannot be read: {error}") from error
    places = {key: tuple(settings[key].split()) for key in _PLACES}
    made = Template(
        name=settings["name"],
        version=numbers["version"],
        output_tokens=numbers["output_tokens"],
        passage_chars=numbers["passage_chars"],
        passages=places["passages"],
        texts=places["texts"],
        values=places["values"],
        system=parts[1].strip(),
        user=parts[2].strip(),
        schema=schema,
    )
    _check(made, name)
    return made


def slots(text: str) -> list[str]:
    """The places to fill in, in their order."""
    return _SLOT.findall(text)


def put_in(text: str, filling: Mapping[str, str]) -> str:
    """The text with every place filled. What is put in is not looked at again."""
    return _SLOT.sub(lambda slot: filling[slot[1]], text)


def _settings(head: str, name: str) -> dict[str, str]:
    settings = {}
    for line in head.splitlines():
        key, colon, value = line.partition(":")
        if not colon or key.strip() not in (*_KEYS, "schema") or key.strip() in settings:
            raise _bad(name, f"has a head that cannot be read at {line!r}")
        settings[key.strip()] = value.strip()
    return settings


def _check(made: Template, name: str) -> None:
    quoted, declared = {*made.passages, *made.texts}, [*made.passages, *made.texts, *made.values]
    if made.name != name:
        raise _bad(name, f"calls itself {made.name!r}")
    if min(made.version, made.output_tokens, made.passage_chars) < 1:
        raise _bad(name, "has numbers below 1")
    if len(set(declared)) < len(declared):
        raise _bad(name, "names a place twice")
    if undeclared := {*slots(made.system), *slots(made.user)}.symmetric_difference(declared):
        raise _bad(name, f"declares other places than it has: {', '.join(sorted(undeclared))}")
    if not quoted.isdisjoint(slots(made.system)):
        raise _bad(name, "quotes data in its standing part")
    if re.search(r"\{\{|\}\}", _SLOT.sub("", made.system + made.user)):
        raise _bad(name, "has braces that are no place")
    try:
        check_schema(made.schema, made.passages)
    except Misfit as misfit:
        raise _bad(name, f"has a schema that cannot be used: {misfit}") from misfit
    if made.schema["type"] != "object":
        raise _bad(name, "has a schema that is no object")


def _bad(name: str, what: str) -> RecollectError:
    return RecollectError(f"the prompt {name!r} {what}")
