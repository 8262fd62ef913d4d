"""The keywords of `Memory` are typed, and declared once for every surface."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from bethink import Draft, Filters, Memory, Refused, Remembered
from bethink.api.options import (
    FilterOptions,
    MemoryChanges,
    MemoryFields,
    Option,
    RecallOptions,
    ThreadFields,
)
from bethink.cli.options import _filter_names
from bethink.cli.recall import recall as recall_command
from bethink.ingest.revision import _DRAFT_FIELDS, _IMMUTABLE_FIELDS
from bethink.model import Thread
from bethink.server.tools.catalog import RECALL, RECALL_OPTIONS

ROOT = Path(__file__).parents[3]


def test_recall_takes_what_is_declared() -> None:
    """Its signature names every option; the filters are its other keywords."""
    named = inspect.signature(Memory.recall).parameters.keys() - {"self", "text", "where"}

    assert named == RecallOptions.__annotations__.keys() - FilterOptions.__annotations__.keys()


def test_the_filters_are_those_of_the_model() -> None:
    """Each by its own name; a list of them by the name of one, too."""
    declared, known = FilterOptions.__annotations__.keys(), set(Filters.__dataclass_fields__)

    assert known <= declared
    assert {f"{name}s" if name != "entity" else "entities" for name in declared - known} <= known


def test_the_fields_of_a_memory_are_those_of_a_draft() -> None:
    """Besides its text; an update changes those that may change."""
    assert MemoryFields.__annotations__.keys() - {"user"} == set(Draft._fields) - {"text"}
    assert MemoryChanges.__annotations__.keys() == _DRAFT_FIELDS - _IMMUTABLE_FIELDS


def test_the_fields_of_a_thread_are_those_of_the_model() -> None:
    """Besides the two that every thread is given."""
    assert ThreadFields.__annotations__.keys() == set(Thread._fields) - {"headline", "members"}


def test_the_command_line_has_every_option_that_says_so() -> None:
    """And passes it by the name of the keyword."""
    hints = RecallOptions.__annotations__.items()
    offered = {name for name, hint in hints if any(isinstance(n, Option) for n in get_args(hint))}

    assert offered <= {parameter.name for parameter in recall_command.params}
    assert set(_filter_names()) == offered & FilterOptions.__annotations__.keys()


def test_tools_offer_declared_options() -> None:
    """Each with a description; use is tracked under a name of its own."""
    offered = set(RECALL.input_schema["properties"]) - {"query", "mark_accessed"}

    assert offered == set(RECALL_OPTIONS) - {"track"}


def test_a_memory_belongs_to_its_user(memory: Memory) -> None:
    """As with the option of the command line; other metadata stays."""
    stored = memory.remember("Ana likes tea", user="ana", metadata={"place": "Bern"})
    memory.remember("Somebody likes coffee", user=None)

    assert memory.get(stored.id).metadata == {"place": "Bern", "user_id": "ana"}
    assert [item.id for item in memory.browse(user="ana")] == [stored.id]
    with_none = memory.remember_each([{"text": "Ben naps", "user": "ben", "metadata": None}])
    assert [item.id for item in memory.browse(user="ben")] == [one.id for one in with_none]


def test_each_of_many_may_be_a_text(memory: Memory) -> None:
    """A draft, its fields or only its text; one that is wrong is refused alone."""
    wrong = {"text": "Who?", "topik": "x"}

    results = memory.remember_each(["plain words", wrong, Draft("a draft"), {"text": "fields"}])

    kinds = [type(result) for result in results]
    assert kinds == [Remembered, Refused, Remembered, Remembered]


def test_what_is_no_memory_is_refused_by_name(memory: Memory) -> None:
    """Neither a value of another type nor a user without a name is stored; others are."""
    wrong: list[Any] = [3, {"text": "x", "user": 7}, {"text": "x", "user": "a", "metadata": 5}]

    *refused, stored = memory.remember_each([*wrong, "plain words"])

    assert [type(result) for result in refused] == [Refused] * 3
    assert isinstance(stored, Remembered)
    assert [item.text for item in memory.browse()] == ["plain words"]
    with pytest.raises(Refused, match="user"):
        memory.remember("x", user=wrong[0])


@pytest.mark.slow
def test_a_type_checker_knows_the_keywords() -> None:
    """It accepts what is right, and refuses a misspelt name and a wrong type."""
    command = [sys.executable, "-m", "mypy", "--strict", "tests/typing/keywords.py"]

    ran = subprocess.run(
        command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
