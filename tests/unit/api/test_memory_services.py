"""`Memory` is one object with services behind it, not a stack of classes."""

from __future__ import annotations

import inspect

import pytest

from bethink import Memory
from bethink.api.browse import Browser, Threads
from bethink.api.files import Files
from bethink.api.links import Linker
from bethink.api.maintenance import Maintenance, Upkeep
from bethink.api.recall import Recaller
from bethink.api.write import Writer
from bethink.errors import Refused
from rows import each_row

SERVICES = (Writer, Recaller, Browser, Threads, Linker, Files, Maintenance, Upkeep)
METHODS = [
    (service, name) for service in SERVICES for name in vars(service) if not name.startswith("_")
]


def test_a_memory_inherits_nothing() -> None:
    """Each service is a class without bases, too."""
    assert Memory.__mro__ == (Memory, object)
    assert all(service.__bases__ == (object,) for service in SERVICES)


@each_row(("service", "name"), METHODS)
def test_every_method_of_a_service_is_one_of_the_memory(service: type, name: str) -> None:
    """With the same signature and a docstring that begins alike, and of one service only."""
    inner, outer = getattr(service, name), getattr(Memory, name)

    assert inspect.signature(outer) == inspect.signature(inner)
    assert inspect.getdoc(outer).startswith(inspect.getdoc(inner))  # type: ignore[union-attr, arg-type]
    assert [other for other, same in METHODS if same == name] == [service]


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
