"""`Memory` is one object: its methods by subject share one open space."""

from __future__ import annotations

import inspect

import pytest

from bethink import Memory
from bethink.errors import Refused
from rows import each_row

SUBJECTS = [base for base in Memory.__mro__[1:-1] if base.__module__.startswith("bethink.api")]


def test_no_method_hides_another() -> None:
    """Each name belongs to one subject, and each subject needs no other class than the base."""
    names = [name for kind in (Memory, *SUBJECTS) for name in vars(kind) if name[:2] != "__"]
    doubled = {name for name in names if names.count(name) > 1}

    assert not doubled
    assert all(kind.__mro__[1:] in (SUBJECTS[-1].__mro__, (object,)) for kind in SUBJECTS)


def test_every_public_method_is_described() -> None:
    """With a docstring."""
    for name, member in inspect.getmembers(Memory, inspect.isfunction):
        assert name.startswith("_") or inspect.getdoc(member), name


def test_other_settings_leave_the_memory_as_it_is(memory: Memory) -> None:
    """What is made with them shares the store and sees every write."""
    strict = memory.using(settings=memory.settings.__class__(max_classification=0))
    strict.remember("The deploy key lives in vault B", classification=2)

    assert strict.browse() == []
    assert [item.text for item in memory.browse()] == ["The deploy key lives in vault B"]
    assert memory.settings.max_classification != 0


@each_row("call", ["get", "stored", "history", "why", "timeline", "thread"])
@each_row("wrong", [None, 5])
def test_an_id_is_a_text(call: str, wrong: object) -> None:
    """Anything else is refused, not an error from inside."""
    with (
        Memory.open(":memory:", embedder="none") as memory,
        pytest.raises(Refused, match="must be a text"),
    ):
        getattr(memory, call)(wrong)


@pytest.mark.parametrize("wrong", [None, 5])
def test_an_id_to_change_is_a_text(wrong: object) -> None:
    """What updates and forgets refuses anything else as well."""
    with Memory.open(":memory:", embedder="none") as memory:
        with pytest.raises(Refused, match="must be a text"):
            memory.update(wrong, text="new")
        with pytest.raises(Refused, match="must be a text"):
            memory.forget([wrong])
