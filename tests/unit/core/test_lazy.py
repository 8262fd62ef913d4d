"""What is made late behaves like what would have been made at once."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from typing import ClassVar

import pytest

from bethink.core.dataclass import dataclass, field, field_types
from bethink.core.dataclass import replace as our_replace
from bethink.core.lazy import lazy_pattern


@dataclass(frozen=True, slots=True)
class Ours:
    """A class of ours."""

    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)
    hidden: int = field(default=3, repr=False, compare=False)

    def twice(self) -> int:
        return 2 * self.a


@dataclasses.dataclass(frozen=True, slots=True)
class Theirs:
    """The same, by the standard library."""

    a: int
    b: str = "x"
    c: list[int] = dataclasses.field(default_factory=list)
    hidden: int = dataclasses.field(default=3, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Checked:
    """A class that looks at its values."""

    d: float = 0.5

    def __post_init__(self) -> None:
        if self.d < 0:
            raise ValueError("d is negative")


@dataclasses.dataclass(frozen=True)
class Below(Ours):
    """A class of the standard library, as one in a plug-in, below one of ours."""

    d: float = 0.5


@dataclass(frozen=True, slots=True)
class Nothing:
    """A class without fields."""


@dataclass(frozen=True, slots=True)
class Single:
    """A class with one field."""

    only: tuple[int, ...] = ()


def test_an_object_is_made_shown_and_compared_as_the_standard_library_does() -> None:
    """Constructor, repr, equality and hash agree with `dataclasses.dataclass`."""
    for given in ((1,), (1, "y"), (1, "y", [2]), (1, "y", [2], 9)):
        ours, theirs = Ours(*given), Theirs(*given)
        assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
        assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
        assert ours == Ours(*given)
        assert ours != theirs
    assert Ours(1, hidden=5) == Ours(1)
    assert Ours(1).c is not Ours(1).c
    assert hash(Single((1, 2))) == hash(Single((1, 2)))
    assert Single((1,)) != Single((2,))
    assert Nothing() == Nothing()
    assert repr(Nothing()) == "Nothing()"


def test_wrong_arguments_are_refused_at_the_first_object_too() -> None:
    """A constructor that has not been compiled yet refuses what a compiled one refuses."""
    said = r"Ours.__init__\(\) missing 1 required positional argument: 'a'"
    with pytest.raises(TypeError, match=said):
        Ours()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Ours(1, z=2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="d is negative"):
        Checked(d=-1)


def test_fields_cannot_change() -> None:
    """Setting and deleting raise, for fields and for what is none."""
    one = Ours(1)
    with pytest.raises(FrozenInstanceError):
        one.a = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'a'"):
        del one.a
    with pytest.raises(FrozenInstanceError):
        one.other = 2  # type: ignore[attr-defined]
    assert not hasattr(one, "__dict__")


def test_the_functions_of_the_standard_library_work() -> None:
    """`fields`, `replace`, `is_dataclass`, copies, pickles and patterns see a data class."""
    assert is_dataclass(Ours)
    assert [one.name for one in fields(Below)] == ["a", "b", "c", "hidden", "d"]
    assert replace(Below(1, d=2.0), b="z") == Below(1, "z", d=2.0)
    one = Ours(1, "y", [3])
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one
    assert one.twice() == 2
    match one:
        case Ours(a, b):
            assert (a, b) == (1, "y")
    assert Ours.__match_args__ == Theirs.__match_args__


def test_a_class_below_that_is_no_data_class_has_the_constructor() -> None:
    """An object of a plain subclass is made like one of its base."""

    class Plain(Single):
        """A subclass that adds no field."""

    assert Plain((4,)).only == (4,)


def test_the_fields_are_those_of_the_standard_library() -> None:
    """Their names, types, defaults and flags."""

    def told(kind: type) -> list[tuple[object, ...]]:
        return [
            (one.name, one.type, one.default, one.default_factory, one.init, one.repr, one.compare)
            for one in fields(kind)
        ]

    assert told(Ours) == told(Theirs)
    assert field_types(Ours) == field_types(Theirs)
    assert [*field_types(Below)] == [one.name for one in fields(Below)]


def test_both_functions_that_replace_do_the_same() -> None:
    """Fields that are not given stay; an unknown one is refused."""
    for one in (Below(1, "y", [3], d=2.5), Ours(1, "y"), Theirs(1, "y")):
        assert our_replace(one, b="z") == replace(one, b="z") != one
        assert our_replace(one) == one
    assert Ours(1).__replace__(b="z") == Ours(1, "z")  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="other"):
        our_replace(Ours(1), other=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="dataclass"):
        our_replace(5, real=1)  # type: ignore[type-var]


def test_help_shows_the_parameters_of_the_constructor() -> None:
    """Before the first object as after a hundred, and of an object that is called its call."""

    @dataclass(frozen=True, slots=True)
    class Called:
        """A class whose objects are called."""

        a: int

        def __call__(self, text: str) -> str:
            return text

    shown = str(inspect.signature(Theirs))
    assert (
        shown == "(a: 'int', b: 'str' = 'x', c: 'list[int]' = <factory>, hidden: 'int' = 3) -> None"
    )
    for _ in range(100):
        assert str(inspect.signature(Ours)) == shown
        assert str(inspect.signature(Called)) == "(a: 'int') -> None"
        assert str(inspect.signature(Called(1))) == "(text: 'str') -> 'str'"

    class Below(Ours):
        """A class with a constructor of its own."""

        def __init__(self, number: int) -> None:
            super().__init__(number)

    assert str(inspect.signature(Below)) == "(number: 'int') -> 'None'"


def test_a_class_that_compares_its_own_way_can_be_hashed() -> None:
    """As `dataclasses` has it for classes whose objects cannot change."""

    @dataclass(frozen=True, slots=True)
    class Odd:  # noqa: PLW1641 - what is tested
        a: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Odd) and (self.a - other.a) % 2 == 0

    assert Odd(1) == Odd(3)
    assert hash(Odd(1)) == hash(Odd(1))


def test_a_class_below_another_data_class_is_refused() -> None:
    """There is none, so that no field is ever looked for in a class above."""
    with pytest.raises(AssertionError, match="below another data class"):

        @dataclass(frozen=True, slots=True)
        class Lower(Ours):
            d: int = 1


def test_a_variable_of_the_class_is_no_field() -> None:
    """As `dataclasses` has it."""

    @dataclass(frozen=True, slots=True)
    class Counted:
        a: int
        limit: ClassVar[int] = 5

    assert [one.name for one in fields(Counted)] == ["a"]
    assert (Counted(1).limit, repr(Counted(1)).endswith("Counted(a=1)")) == (5, True)


def test_a_variable_of_a_class_of_the_standard_library_is_no_field() -> None:
    """Such as one in a plug-in."""

    @dataclasses.dataclass(frozen=True)
    class Counted:
        a: int
        limit: ClassVar[int] = 5

    assert [*field_types(Counted)] == ["a"]
    assert our_replace(Counted(1), a=2) == Counted(2)


def test_a_pattern_can_be_copied_before_and_after_its_first_use() -> None:
    """A copy does what the pattern does, and compiles nothing before it is used."""
    words = lazy_pattern("[a-z]+", re.IGNORECASE)
    for one in (copy.copy(words), copy.deepcopy(words), pickle.loads(pickle.dumps(words))):
        assert one.findall("One two") == words.findall("One two")
    assert pickle.loads(pickle.dumps(words)).findall("One") == ["One"]


def test_a_pattern_is_compiled_when_it_is_used() -> None:
    """A wrong pattern is noticed at its first use; a right one does what `re` does."""
    wrong = lazy_pattern("(")
    with pytest.raises(re.error):
        wrong.match("a")
    words = lazy_pattern("[a-z]+", re.IGNORECASE)
    assert words.findall("One two") == re.findall("[a-z]+", "One two", re.IGNORECASE)
    assert words.sub("x", "One two") == "x x"
    assert words.pattern == "[a-z]+"


def test_the_hundredth_object_is_made_like_the_first() -> None:
    """The constructor is compiled after some objects, which changes nothing."""

    @dataclass(frozen=True, slots=True)
    class Fresh:
        a: int
        b: list[int] = field(default_factory=list)

    for number in range(100):
        one = Fresh(number)
        assert (one.a, one.b) == (number, [])
        assert Fresh(b=[1], a=number) == Fresh(number, [1])
        assert one.b is not Fresh(number).b
    with pytest.raises(TypeError):
        Fresh(1, made=3)  # type: ignore[call-arg]
