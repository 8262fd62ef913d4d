"""Named tuples that are cheap to define behave like those of the standard library."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import typing
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

import pytest

import bethink
from bethink.core.named_tuple import NamedTuple
from rows import each_row

T = TypeVar("T")


class Ours(NamedTuple):
    """A class of ours."""

    a: int
    b: str = "x"
    c: tuple[int, ...] = ()

    @property
    def twice(self) -> int:
        return 2 * self.a


class Theirs(typing.NamedTuple):
    """The same, by the standard library."""

    a: int
    b: str = "x"
    c: tuple[int, ...] = ()


class Box(NamedTuple, Generic[T]):
    """A class with a type variable."""

    value: T


class Below(Ours):
    """A class that inherits the fields."""

    def thrice(self) -> int:
        return 3 * self.a


@pytest.mark.parametrize("arguments", [(1,), (1, "y"), (1, "y", (2,))])
def test_it_holds_and_shows_what_it_was_given(arguments: tuple[Any, ...]) -> None:
    """Equal to the tuple, with the same hash, text, fields and dictionary."""
    ours, theirs = Ours(*arguments), Theirs(*arguments)

    assert ours == theirs == tuple(theirs)
    assert hash(ours) == hash(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours._asdict() == theirs._asdict()
    assert (ours.a, ours.b, ours.c, ours.twice) == (*theirs, 2)
    assert Ours(a=arguments[0]) == Ours(arguments[0])


def test_the_hundredth_is_made_like_the_first() -> None:
    """The constructor is compiled after some objects, which changes nothing."""

    class Fresh(NamedTuple):
        cls: int
        b: str = "x"

    for number in range(100):
        assert Fresh(number) == Fresh(cls=number) == Fresh(number, b="x") == (number, "x")
        assert Fresh(b="y", cls=number) == (number, "y")


def test_the_class_says_the_same_of_itself() -> None:
    """Fields, defaults, types, documentation and parameters, before any object and after."""

    class Unused(NamedTuple):
        a: int
        b: str = "x"

    assert str(inspect.signature(Unused)) == "(a: 'int', b: 'str' = 'x')"
    assert Ours._fields == Theirs._fields == Ours.__match_args__
    assert Ours._field_defaults == Theirs._field_defaults
    assert get_type_hints(Ours) == get_type_hints(Theirs)
    assert Ours.__doc__ == "A class of ours."
    assert inspect.signature(Ours).parameters.keys() == inspect.signature(Theirs).parameters.keys()
    assert issubclass(Ours, tuple)


def test_copies_are_equal_and_of_the_class() -> None:
    """Replaced, copied, pickled, or made of a row."""
    one = Ours(1, "y")

    copies = [copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))]
    assert all(made == one and type(made) is Ours for made in copies)
    assert one._replace(b="z") == Ours(1, "z")
    assert Ours._make([1, "y", ()]) == one
    match one:
        case Ours(a, b):
            assert (a, b) == (1, "y")


@each_row(
    ("wrong", "error"),
    [
        (lambda made: made(), TypeError),
        (lambda made: made(1, "x", (), 4), TypeError),
        (lambda made: made(1, d=4), TypeError),
        (lambda made: made._make([1]), TypeError),
        (lambda made: made(1)._replace(d=4), (TypeError, ValueError)),
        (lambda made: setattr(made(1), "a", 2), AttributeError),
        (lambda made: setattr(made(1), "d", 2), AttributeError),
    ],
)
def test_what_the_standard_library_refuses_is_refused(wrong: Any, error: Any) -> None:
    """With an error of the same kind."""
    for made in (Theirs, Ours):
        with pytest.raises(error):
            wrong(made)


def test_a_default_must_be_followed_by_defaults() -> None:
    """Else the class is not made."""
    with pytest.raises(TypeError, match="a field of Wrong without a default"):
        type(NamedTuple)(
            "Wrong", (NamedTuple,), {"__annotations__": {"a": "int", "b": "int"}, "a": 1}
        )


def test_classes_may_be_generic_and_have_subclasses() -> None:
    """A subclass constructs its own objects, whichever class is used first."""
    below = Below(2)

    assert type(below) is Below
    assert (below.thrice(), below.twice) == (6, 4)
    assert type(Ours(1)) is Ours
    assert Box[int](3).value == 3
    assert Box("x") == ("x",)


def test_every_module_defines_them_the_cheap_way() -> None:
    """A class by `typing.NamedTuple` costs a command fifteen times as much."""
    package = Path(bethink.__file__).parent
    own = package / "core" / "named_tuple.py"
    sources = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    imported = re.compile(r"^from typing import (?:\([^)]*|[^\n(]*)\bNamedTuple\b", re.MULTILINE)

    assert [path for path, text in sources.items() if imported.search(text) and path != own] == []


def test_fields_are_found_as_python_3_14_has_them() -> None:
    """There a module without the future import gives a function instead of the annotations."""
    content = {"__annotate_func__": lambda _: {"a": int, "b": str}, "b": "x"}
    made = type(NamedTuple)("Made", (NamedTuple,), content)

    assert made._fields == ("a", "b")
    assert made(1, b="y") == (1, "y")
    assert type(NamedTuple)("Empty", (NamedTuple,), {})._fields == ()
