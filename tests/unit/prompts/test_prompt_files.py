"""Prompts in their files: what they must be, and how they are filled."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

import bethink.prompts
from bethink import Memory
from bethink.errors import BethinkError, NotFound, Refused
from bethink.ingest.entity_extraction import ENTITY_KINDS
from bethink.ports import Budget
from bethink.prompts import (
    Passage,
    cited_ids,
    fill_prompt,
    load_passages,
    load_template,
    template_names,
)
from bethink.testing import FixedClock, ScriptedModel
from corpus import NOW
from rows import each_row

FOLDER = Path(bethink.prompts.__file__).parent
HEAD = ("version", "output_tokens", "passage_chars", "passages", "texts", "values")
KEYS = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "minItems", "maxItems"), "string": ("enum", "minLength", "maxLength"),
    "integer": ("minimum", "maximum"), "number": ("minimum", "maximum"), "boolean": (),
}  # fmt: skip


@each_row("name", template_names())
def test_every_prompt_can_be_loaded(name):
    """Its places are declared and there; the limits of its schema are told in its words."""
    template = load_template(name)

    assert template.name == name
    told = re.sub(r"\s+", " ", template.system)
    for limit in re.findall(r'"maxItems": (\d+)', json.dumps(template.schema)):
        words = {"3": "three", "5": "5", "8": "8|eight"}
        if limit in words:
            assert re.search(words[limit], told), (name, limit)


def test_no_file_lies_about():
    """Every schema belongs to a prompt."""
    used = {
        re.search(r"^schema: (\S+)$", path.read_text(), re.MULTILINE) or path.stem
        for path in FOLDER.glob("*.md")
    }
    names = {one if isinstance(one, str) else one[1] for one in used}

    assert {path.stem for path in FOLDER.glob("*.json")} == names


def test_entities_are_of_the_kinds_there_are():
    """A model is offered none that the rest would not know."""
    schema = load_template("extract").schema
    kinds = schema["properties"]["entities"]["items"]["properties"]["kind"]["enum"]

    assert set(kinds) <= ENTITY_KINDS


def test_an_unknown_prompt_is_not_found():
    """With the names of those there are; a path is no name."""
    for name in ("sumarise", "../prompts/expand", ""):
        with pytest.raises(NotFound, match="no prompt") as caught:
            load_template(name)
        assert "summarise" in caught.value.remedy


@each_row("name", template_names())
def test_every_place_of_a_prompt_is_declared_once(name):
    """And there; what is quoted stands in the user part only, and no brace is left over."""
    template = load_template(name)
    declared = [*template.passages, *template.texts, *template.values]
    in_system, in_user = (
        re.findall(r"\{\{(\w+)\}\}", part) for part in (template.system, template.user)
    )

    assert len(set(declared)) == len(declared)
    assert {*in_system, *in_user} == set(declared)
    assert set(in_system) <= set(template.values)
    assert not re.search(r"[{}]{2}", re.sub(r"\{\{\w+\}\}", "", template.system + template.user))
    assert min(template.version, template.output_tokens, template.passage_chars) >= 1
    head = (FOLDER / f"{name}.md").read_text("utf-8").split("\n---\n")[0].splitlines()[1:]
    keys = [line.partition(":")[0] for line in head]
    assert len(set(keys)) == len(keys)
    assert set(keys) - {"schema"} == {*HEAD}


@each_row("name", template_names())
def test_an_answer_is_a_closed_object(name):
    """Of the types and limits that are checked; a limit may be the count of its passages."""
    template = load_template(name)
    assert template.schema["type"] == "object"
    parts = [template.schema]
    for part in parts:
        kind = part["type"]
        assert part.keys() <= {"type", "description", *KEYS[kind]}, (name, part)
        limits = [part[key] for key in KEYS[kind] if key.startswith(("min", "max")) and key in part]
        assert all(type(one) is int or one in template.passages for one in limits)
        if kind == "object":
            assert part["additionalProperties"] is False
            assert sorted(part["required"]) == sorted(part["properties"])
        parts += [*part.get("properties", {}).values(), *filter(None, [part.get("items")])]


def test_every_place_is_filled_and_none_besides():
    """Like a function called with the wrong arguments."""
    right = {"question": "q", "memories": (), "today": date(2024, 5, 1)}
    fill_prompt("sufficiency", "here", **right)

    for wrong in ({}, right | {"more": "x"}, {"question": "q", "memories": ()}):
        with pytest.raises(TypeError, match="'sufficiency' needs other parts"):
            fill_prompt("sufficiency", "here", **wrong)
    for name, part in (("question", 3), ("memories", "text"), ("today", "2024"), ("today", True)):
        with pytest.raises(TypeError, match="expected"):
            fill_prompt("sufficiency", "here", **right | {name: part})


def test_a_long_text_is_cut_and_says_so():
    """At the length the prompt allows."""
    prompt = fill_prompt(
        "rerank", "here", question="q", candidate=[Passage("here", "a", "x" * 5000)]
    )

    assert "x" * 1200 + " […]\n" in prompt.user
    assert "x" * 1201 not in prompt.user


def test_the_same_parts_make_the_same_prompt():
    """So that what a model was asked can be looked at again."""
    parts = {"question": "q", "memories": [Passage("s", "a", "text")], "today": date(2024, 5, 1)}

    assert fill_prompt("sufficiency", "s", **parts) == fill_prompt("sufficiency", "s", **parts)


def test_a_text_of_another_space_is_refused():
    """Even one among many, and before anything is put together."""
    mixed = [Passage("here", "a", "ours"), Passage("there", "b", "theirs")]

    with pytest.raises(Refused, match="a text is from another") as caught:
        fill_prompt("summarise", "here", memories=mixed)

    assert "theirs" not in caught.value.message


@pytest.fixture
def two_spaces(tmp_path):
    """Two memories in which the same ids stand for other texts."""
    opened = []
    for name in ("ours", "theirs"):
        memory = Memory.open(
            name, path=tmp_path / f"{name}.db", embedder="none", clock=FixedClock(NOW)
        )
        memory.remember(f"The key of {name} is in vault B", id="0000000000000001", speaker="Anna")
        memory.remember(f"The door of {name} is open", id="0000000000000002")
        opened.append(memory)
    yield opened
    for memory in opened:
        memory.close()


def test_a_prompt_holds_what_its_own_store_holds(two_spaces):
    """Whatever a caller has in its hands, the text is read from the space at work."""
    ours, theirs = two_spaces
    foreign = theirs.store.items.get(["0000000000000001", "0000000000000002"])
    model = ScriptedModel(lambda _: None)

    passages = load_passages(ours.store, list(foreign))
    prompt = fill_prompt("summarise", ours.store.space, memories=passages)
    with pytest.raises(BethinkError):
        model.complete(prompt, budget=Budget())

    seen = model.prompts[0].system + model.prompts[0].user
    assert "Anna: The key of ours is in vault B" in seen
    assert "theirs" not in seen
    assert NOW.date().isoformat() in seen
    with pytest.raises(Refused):
        fill_prompt("summarise", theirs.store.space, memories=passages)


def test_passages_come_in_order_once_and_only_if_there(two_spaces):
    """What is gone is left out."""
    ours, _ = two_spaces
    first, second = "0000000000000001", "0000000000000002"

    passages = load_passages(ours.store, [second, first, "0000000000000009", second])

    assert [passage.id for passage in passages] == [second, first]
    assert load_passages(ours.store, []) == ()


def test_passages_of_an_earlier_moment(two_spaces):
    """As it stood then."""
    ours, _ = two_spaces
    before = datetime(2000, 1, 1, tzinfo=UTC)

    assert load_passages(ours.store, ["0000000000000001"], as_of=before) == ()


def test_numbers_of_an_answer_lead_back_to_ids():
    """In its order, each once."""
    passages = [Passage("s", key, key) for key in ("a", "b", "c")]

    assert cited_ids(passages, [3, 1, 3]) == ("c", "a")
    assert cited_ids(passages, []) == ()
