"""Changing one key of a JSON text."""

from __future__ import annotations

import json

import pytest

from bethink.errors import BadSetting
from bethink.hooks.install.config_text import look_up, parse_json, remove_key, set_key
from rows import each_row

KEYS = ("mcpServers", "bethink")
VALUE = {"command": "/bin/bethink", "args": ["mcp"]}


@each_row(
    "text",
    ["{}", "{ }", "{\n}\n", '{"a": 1}', '{"a":1,"b":[{"c":"}"}]}', '{\n  "a": 1\n}\n',
     '{\r\n\t"a": 1,\r\n\t"b": {\r\n\t}\r\n}', '{"mcpServers": {}}',
     '{\n    "mcpServers": {\n        "x": {"command": "y"}\n    },\n    "z": null\n}\n',
     '\ufeff{"a": "\\u00e9 \\" , } {"}', '{"mcpServers" : { "x" : 1 , "y" : 2 } , "q" : 3 }',
     '  \n{"a": -1.5e3, "b": true}  \n'],
)  # fmt: skip
def test_a_key_is_added_and_nothing_else(text: str) -> None:
    """Every byte that was there is there still, in the same order; the value is new."""
    new = set_key(text, KEYS, VALUE)

    assert look_up(parse_json(new), KEYS) == VALUE
    start = next((n for n, (a, b) in enumerate(zip(text, new, strict=False)) if a != b), len(text))
    kept = text[start:]
    assert new.startswith(text[:start])
    assert new.endswith((kept, kept.lstrip()))
    assert ("\r\n" in text) == ("\r\n" in new)


@pytest.mark.parametrize("text", ["", "  \n", "\ufeff"])
def test_an_empty_file_becomes_an_object(text: str) -> None:
    """A file without anything in it is filled."""
    assert parse_json(set_key(text, KEYS, VALUE)) == {"mcpServers": {"bethink": VALUE}}


def test_it_is_laid_out_as_its_neighbours_are() -> None:
    """Indentation, line ends and one-line style are taken over."""
    tabs = set_key('{\r\n\t"mcpServers": {\r\n\t\t"x": 1\r\n\t}\r\n}', KEYS, {"a": [1]})
    line = set_key('{"mcpServers": {"x": 1, "y": 2}}', KEYS, {"a": [1]})

    assert tabs == (
        '{\r\n\t"mcpServers": {\r\n\t\t"x": 1,\r\n\t\t"bethink": {\r\n\t\t\t"a": [\r\n'
        "\t\t\t\t1\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}"
    )
    assert line == '{"mcpServers": {"x": 1, "y": 2, "bethink": {"a": [1]}}}'


def test_a_value_is_replaced_in_its_place() -> None:
    """What stands before and after stays where it was."""
    text = '{"mcpServers": {"bethink": {"old": 1}, "x": 2}}'

    assert set_key(text, KEYS, 5) == '{"mcpServers": {"bethink": 5, "x": 2}}'


@each_row(
    ("text", "left"),
    [
        ('{"mcpServers": {"bethink": {"a": 1}}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {"bethink": 1, "x": 2}}', '{"mcpServers": {"x": 2}}'),
        ('{"mcpServers": {"x": 2, "bethink": 1}}', '{"mcpServers": {"x": 2}}'),
        ('{"mcpServers": {"x": 2,\n "bethink": 1,\n "y": 3}}', '{"mcpServers": {"x": 2,\n "y": 3}}'),
        ('{"mcpServers": {"x": 2}}', '{"mcpServers": {"x": 2}}'),
    ],
)  # fmt: skip
def test_a_key_is_taken_out(text: str, left: str) -> None:
    """With it goes one comma, and nothing else."""
    assert remove_key(text, KEYS) == left


@each_row(
    "text",
    ["{", "[1, 2]", "5", '"x"', "{} {}", '{"a": 1,,}', '{# no\n"a": 1}', '{/* "a": 1}', '{"a": 1, "a": 2}',
     '{"a": NaN}', '{"mcpServers": []}', '{"mcpServers": 5}', "{'a': 1}", '{"a": "\x01"}',
     '{"a":' * 60_000],
)  # fmt: skip
def test_what_is_not_json_is_refused(text: str) -> None:
    """Broken or ambiguous files are refused, never mended."""
    with pytest.raises(BadSetting):
        set_key(text, KEYS, VALUE)


def test_the_same_key_elsewhere_is_left_alone() -> None:
    """Only the path counts, not the name."""
    text = '{"bethink": 1, "other": {"mcpServers": {"bethink": 2}}}'
    new = set_key(text, KEYS, 3)

    assert json.loads(new) == {**json.loads(text), "mcpServers": {"bethink": 3}}
