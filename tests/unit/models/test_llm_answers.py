"""Reading an object out of what a model said."""

from __future__ import annotations

import time

import pytest

from bethink.core.json_schema import SchemaViolation
from bethink.models.llm.providers import parse_object
from rows import each_row


@each_row(
    "text",
    [
        '{"a": 1}',
        '\n {"a": 1} \n',
        '```json\n{"a": 1}\n```',
        '```\n{\n"a": 1}\n```  \n',
        'Sure:\n```JSON5\n{"a": 1}\n```\nDone.',
        '<think>{"a": 2}</think>{"a": 1}',
        ' <think>\n```\n{"a": 2}\n```\n</think>\n```json\n{"a": 1}\n```',
    ],
)
def test_the_object_is_found(text):
    """Bare, in one code block, after thoughts."""
    assert parse_object(text) == {"a": 1}


@each_row(
    ("text", "why"),
    [
        ("", "not JSON (line 1, column 1)"),
        ('{"a": 1', "not JSON"),
        ('{"a": 1} and more', "not JSON (line 1, column 10)"),
        ('It is {"a": 1}', "not JSON"),
        ('```\n{"a": 1}\n```\n```\n{"a": 2}\n```', "not JSON"),
        ('<think>{"a": 1}', "not JSON"),
        ('[{"a": 1}]', "not one JSON object"),
        ("null", "not one JSON object"),
        ('"{}"', "not one JSON object"),
        ('{"a": NaN}', "numbers or nesting"),
        ('{"a": -Infinity}', "numbers or nesting"),
        ('{"a": {"b": 1, "b": 1}}', "same key twice"),
        ('{"a": ' + "1" * 5000 + "}", "numbers or nesting"),
        ('{"a":' * 100_000, "numbers or nesting"),
    ],
)
def test_what_is_no_object_is_said(text, why):
    """In our words, with a place at most."""
    with pytest.raises(SchemaViolation) as caught:
        parse_object(text)

    assert why in str(caught.value)


@each_row("piece", ["```a\n", "```\n", "<think>", "{", "\n", '{"a":[', '"\\'])
def test_no_text_takes_long(piece):
    """A million characters made to be slow are refused at once."""
    started = time.perf_counter()

    with pytest.raises(SchemaViolation):
        parse_object(piece * (1_000_000 // len(piece)))

    assert time.perf_counter() - started < 60
