"""Prompts in their files: what they must be, and what is refused on loading."""

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
from bethink.prompts import Passage, cited_ids, fill_prompt, load_passages, template_names
from bethink.prompts.template import load_template, parse_template
from bethink.testing import FixedClock, ScriptedModel
from corpus import NOW
from rows import each_row

FOLDER = Path(bethink.prompts.__file__).parent
HEAD = "name: x\nversion: 1\noutput_tokens: 9\npassage_chars: 9\npassages: m\ntexts: q\nvalues: d"
TEXT = f"---\n{HEAD}\n---\nOn {{{{d}}}} do this.\n---\n{{{{q}}}} {{{{m}}}}\n"
SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["n"],
    "properties": {"n": {"type": "integer", "maximum": "m"}},
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


@each_row(
    ("wrong", "said"),
    [
        (TEXT[4:], "needs a head"),
        (TEXT + "\n---\nmore", "needs a head"),
        (TEXT.replace("version: 1", "version: one"), "cannot be read"),
        (TEXT.replace("version: 1", "version: 0"), "below 1"),
        (TEXT.replace("version: 1\n", ""), "has no version"),
        (TEXT.replace("version: 1", "revision: 1"), "cannot be read at 'revision: 1'"),
        (TEXT.replace("version: 1", "version: 1\nversion: 2"), "cannot be read at 'version: 2'"),
        (TEXT.replace("name: x", "name: y"), "has the name 'y' in its head"),
        (TEXT.replace("{{m}}", ""), "placeholders that do not match its head: m"),
        (TEXT.replace("{{m}}", "{{m}} {{z}}"), "placeholders that do not match its head: z"),
        (TEXT.replace("texts: q", "texts: q m"), "twice"),
        (TEXT.replace("do this", "{{q}}"), "has a quoted placeholder in its system part"),
        (TEXT.replace("do this", "{{ this"), "braces"),
    ],
)
def test_a_prompt_that_is_wrong_is_refused_on_loading(wrong, said):
    """By its name and with what is wrong."""
    parse_template("x", TEXT, json.dumps(SCHEMA))

    with pytest.raises(BethinkError, match=f"the prompt 'x' .*{re.escape(said)}"):
        parse_template("x", wrong, json.dumps(SCHEMA))


@each_row("schema", [
    "{", "[]", '{"type": "string"}', json.dumps(SCHEMA | {"required": []}),
    json.dumps(SCHEMA).replace('"m"', '"q"'),
])  # fmt: skip
def test_a_schema_that_is_wrong_is_refused_on_loading(schema):
    """An answer is always a closed object."""
    with pytest.raises(BethinkError, match="the prompt 'x'"):
        parse_template("x", TEXT, schema)


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
