"""A wrong argument is refused in words that name it, never with an error of Python."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
import pytest

from bethink import Item, Memory, Refused
from bethink.core.arguments import check_methods
from bethink.errors import BethinkError
from bethink.model import Candidate
from bethink.retrieval.stages.adjust import Importance
from rows import each_row

if TYPE_CHECKING:
    from bethink.retrieval.context import Context

_ITSELF = {"close", "using"}  # close the memory, or take parts of it
_WRONG = ("x", 5, -1.5, True, ["a"], {"a": 1}, None, object())


def _calls(memory: Memory, item: str) -> list[tuple[str, str, Any, dict[str, Any]]]:
    """Every public method with each of its arguments wrong in turn, the others right."""
    right = {"text": "staging", "path": "x.md", "source": "nobody", "query": "staging"}
    found = []
    for name, method in inspect.getmembers(memory, inspect.ismethod):
        if name.startswith("_") or name in _ITSELF:
            continue
        parameters = inspect.signature(method).parameters.values()
        named = [
            one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        ]
        needed = {one.name: right.get(one.name, item) for one in named if one.default is one.empty}
        found += [
            (name, one.name, value, {**needed, one.name: value})
            for one in named
            for value in _WRONG
        ]
    return found


def test_no_argument_raises_an_error_of_python(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every public method; objects that quack like what is wanted are the caller's."""
    monkeypatch.chdir(tmp_path)
    item = memory.remember("The staging server is in Porto").id
    raised = []
    for name, argument, value, given in _calls(memory, item):
        try:
            getattr(memory, name)(**given)
        except BethinkError:
            continue
        except OSError:
            assert name == "import_"  # a file that is not there
        except Exception as error:  # noqa: BLE001 the test is about which there are
            if type(value) is not object:
                raised.append(f"{name}({argument}={value!r}): {error!r}")

    assert raised == []


@each_row(
    "method, given, told",
    [
        ("boost", {"by": "much"}, "by is 'much', but must be a number"),
        ("demote", {"by": None}, "by is None, but must be a number"),
        ("get", {"item_id": 5}, "item_id is 5, but must be a text"),
        ("why", {"types": "causes"}, "types is 'causes', but must be a list of texts"),
        ("why", {"types": [5]}, "types is [5], but must be a list of texts"),
        ("recall", {"boost": 3}, "boost is 3, but must be a function"),
        ("recall", {"profile": 5}, "profile is 5, but must be a text or a Profile"),
        ("recall", {"most": 5}, "most is 5, but must be a mapping"),
        ("recall", {"now": "never"}, "now: 'never' is not a valid time"),
        ("maintenance", {"limit": -1}, "limit is -1"),
        ("recall", {"cursor": 5}, "cursor is 5, but must be a text"),
        ("why_not", {"boost": "up"}, "boost is 'up', but must be a function"),
        ("recall", {"since": "2026-12-01", "until": "2026-01-01"}, "is not before until"),
        ("browse", {"since": "2026-12-01", "until": "2026-01-01"}, "is not before until"),
    ],
)
def test_a_refusal_names_the_argument(
    memory: Memory, method: str, given: dict[str, Any], told: str
) -> None:
    item = memory.remember("The staging server is in Porto").id
    first = {
        "maintenance": [],
        "recall": ["staging"],
        "why_not": [item, "staging"],
        "browse": [],
        "get": [],
    }

    with pytest.raises(Refused) as refused:
        getattr(memory, method)(*first.get(method, [item]), **given)

    assert told in refused.value.message


def test_the_time_of_a_recall_may_be_told_in_words(memory: Memory) -> None:
    """As the other moments; from the clock of the memory."""
    told = memory.remember("The staging server moved", occurred_at="2026-01-01").id

    assert memory.recall("staging", now="yesterday").query.now < memory.now
    assert [hit.item.id for hit in memory.recall("staging", now="2026-03-01").hits] == [told]


Colour = Literal["red", "green"]
Painted = Callable[[str], None]


class Wall:
    """A class whose methods name types of this module, and one that only checkers know."""

    def paint(
        self,
        colour: Colour | None = None,
        coats: Sequence[Colour] = (),
        told: Painted | None = None,
        by: Context | None = None,
    ) -> str:
        return f"{colour} {coats} {told} {by}"


check_methods(Wall)


@each_row(
    "given, told",
    [
        ({"colour": 5}, "colour is 5, but must be a text"),
        ({"coats": ["red", 5]}, "coats is ['red', 5], but must be a list"),
        ({"told": "me"}, "told is 'me', but must be a function"),
        ({"by": "me"}, "by is 'me', but must be a Context"),
    ],
)
def test_the_alias_of_a_type_is_known_by_what_it_means(given: dict[str, Any], told: str) -> None:
    """No table lists the names of types."""
    assert Wall().paint("red", ["red"], told=print, by=cast("Context", object()))
    with pytest.raises(Refused, match=re.escape(told)):
        Wall().paint(**given)


def test_a_subclass_may_have_annotations_that_are_types(memory: Memory) -> None:
    """As in a module without ``from __future__ import annotations``."""

    def shout(_self: Memory, text: str, times: int | None = 1) -> str:
        return text.upper() * (times or 0)

    shout.__annotations__ = {"text": str, "times": int | None}
    own_class: Any = type("Own", (Memory,), {"shout": shout})
    own = own_class(memory.store)
    assert own.shout("a", times=2) == "AA"
    with pytest.raises(Refused, match="text is 5, but must be a text"):
        own.shout(5)


Kept = TypeVar("Kept")


@each_row(
    "annotation, value",
    [
        (Any, 5),
        (Kept, 5),
        (None, None),
        (list[str], ["a"]),
        ("list[str] | None", ["a"]),
        (type[Memory], Memory),
        (tuple[int, ...], (1, 2)),
        (Sequence, ["a"]),
        (Annotated[str, []], "a"),
        ("frames.Frame", object()),
        ("Frame[int]", object()),
    ],
)
def test_a_subclass_may_have_annotations_of_any_kind(
    memory: Memory, annotation: object, value: object
) -> None:
    """What only a type checker understands is not checked."""

    def give(_self: Memory, what: object) -> object:
        return what

    give.__annotations__ = {"what": annotation}
    own_class: Any = type("Own", (Memory,), {"give": give})
    assert own_class(memory.store).give(value) is value


class TupleReranker(NamedTuple):
    """A reranker may be a tuple: a protocol does not say what else a value is."""

    score: float = 1.0

    def __call__(self, _query: str, texts: Sequence[str]) -> Sequence[float]:
        return [self.score] * len(texts)


@each_row(
    "given",
    [
        {"k": np.int64(1)},
        {"min_relevance": np.float32(0)},
        {"whole": np.bool_(True)},
        {"now": "2030-01-01"},
        {"now": date(2030, 1, 1)},
        {"as_of": date(2030, 1, 1)},
        {"reranker": TupleReranker()},
        {"tags": ("a", "b"), "include_expired": np.bool_(True)},
        {"turns_before": ("where is it?",)},
        {"most": None, "cursor": None, "profile": None},
    ],
)
def test_values_that_mean_the_same_are_accepted(memory: Memory, given: dict[str, Any]) -> None:
    item = memory.remember("The staging server is in Porto", tags=["a", "b"]).id
    given.setdefault("now", "2030-01-01")

    (hit,) = memory.recall("staging server", **given).hits

    assert hit.item.id == item
    assert memory.why_not(item, "staging server", **given).returned


def test_numbers_of_numpy_are_stored_as_numbers(memory: Memory) -> None:
    old, new = (
        memory.remember(f"The staging server is in {city}").id for city in ("Faro", "Porto")
    )

    assert memory.boost(new, np.float32(1)).relevance == memory.demote(old, np.int64(-1)).relevance
    assert memory.link(new, "supersedes", old, weight=np.float32(0.5)).weight == 0.5


@each_row("name", ["limit", "top_k", "n"])
def test_another_word_for_k_is_refused_with_the_right_one(memory: Memory, name: str) -> None:
    with pytest.raises(Refused) as refused:
        memory.recall("staging server", **{name: 3})  # type: ignore[arg-type]

    assert refused.value.remedy == "recall takes k, lists take limit"


@each_row("gave", ["x", None, (1, 2, 3), (), -1.0, float("nan")])
def test_a_boost_that_gives_no_number_changes_nothing(memory: Memory, gave: Any) -> None:
    memory.remember("The staging server is in Porto")

    (hit,) = memory.recall("staging server", boost=lambda _item: gave).hits

    assert hit.score == memory.recall("staging server").hits[0].score
    assert "ignored" in str(hit.reason("boost"))


def test_a_marked_memory_ranks_higher(memory: Memory) -> None:
    """With the profile default; the mark is a reason of the score, and demote takes it back."""

    def first() -> Item:
        return memory.recall("staging server").hits[0].item

    memory.remember("The staging server is in Porto")
    memory.remember("The staging server has 16 cores")
    second = memory.recall("staging server").hits[1].item

    memory.boost(second.id, 10)
    hit = memory.recall("staging server").hits[0]

    assert hit.item.id == second.id
    assert "marked relevant +10" in str(hit.reason("importance"))
    memory.demote(second.id, 20)
    assert first().id != second.id


def test_a_mark_counts_within_its_bounds_only() -> None:
    """Whatever an export or another machine says."""
    items = (Item(f"{far}", "x", datetime.now(UTC), "test", relevance=far) for far in (1e9, -1e9))
    up, down = (Candidate(item, 1.0) for item in items)

    raised, lowered = Importance(marked=0.02)((up, down), cast("Context", None))

    assert (raised.score, lowered.score) == pytest.approx((1.2, 0.8))


def test_a_marked_memory_that_nobody_vouches_for_stays_below_trusted_ones(memory: Memory) -> None:
    trusted = memory.remember("The staging server is in Porto").id
    other = memory.remember("The staging server is in Faro", source_class="web").id
    assert memory.get(other).trust == 0
    memory.boost(other, 10)

    assert memory.recall("where is the staging server?").hits[0].item.id == trusted


@each_row(
    "name, model", [("transformer", "encoder"), ("words", "encoder"), ("wordllama", "encoder")]
)
def test_a_name_of_an_earlier_version_opens_what_the_setting_means(name: str, model: str) -> None:
    with (
        Memory.open(":memory:", embedder=name) as former,
        Memory.open(":memory:", embedder=model) as now,
    ):
        assert former.embedder is not None
        assert now.embedder is not None
        assert former.embedder.model == now.embedder.model
