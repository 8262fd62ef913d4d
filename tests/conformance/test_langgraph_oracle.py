"""The LangGraph store behaves as LangGraph's own store in memory does, whatever is done to it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from bethink import Memory
from deferred import Deferred
from thorough import examples

langgraph = Deferred("langgraph.store.base", "langgraph.store.memory")
integration = Deferred("bethink.integrations.langgraph")

LABELS = st.sampled_from(["a", "b", "users", "a/b", "日本", " spaced ", '"'])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
PREFIXES = st.lists(LABELS, max_size=2).map(tuple)
PATHS = st.lists(LABELS | st.just("*"), min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "other", "K", "k ", "-1", "x" * 300])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.text(alphabet="ab\x00é1 ", max_size=3)
)
FIELDS = st.sampled_from(["n", "s", "", "a.b", "$x"])
VALUES = st.dictionaries(
    FIELDS,
    SCALARS
    | st.lists(SCALARS, max_size=2)
    | st.dictionaries(st.sampled_from(["n", "s"]), SCALARS, max_size=2),
    max_size=3,
)
COMPARED = st.integers(-3, 3) | st.floats(-3, 3, width=16)
OPERATORS = st.dictionaries(
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), COMPARED, min_size=1, max_size=2
)
FILTERS = st.none() | st.dictionaries(
    FIELDS, SCALARS | OPERATORS | st.lists(SCALARS, max_size=2), max_size=2
)


def told(items: list[Any]) -> list[tuple[Any, ...]]:
    """What was found, whatever its order."""
    return sorted(
        (item.namespace, item.key, json.dumps(item.value, sort_keys=True)) for item in items
    )


class LikeInMemory(RuleBasedStateMachine):
    """Does the same to both and looks whether both say the same."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory.open(":memory:", embedder="none")
        self.error_type = integration.BethinkStore(self.memory)
        self.oracle = langgraph.InMemoryStore()

    def teardown(self) -> None:
        self.memory.close()

    @initialize(entries=st.lists(st.tuples(NAMESPACES, KEYS, VALUES), max_size=4))
    def begin(self, entries: list[Any]) -> None:
        ops: list[langgraph.Op] = [langgraph.PutOp(*entry) for entry in entries]
        self.error_type.batch(ops)
        self.oracle.batch(ops)

    @rule(namespace=NAMESPACES, key=KEYS, value=VALUES)
    def put(self, namespace: Any, key: str, value: dict[str, Any]) -> None:
        self.error_type.put(namespace, key, value)
        self.oracle.put(namespace, key, value)
        self.get(namespace, key)

    @rule(namespace=NAMESPACES, key=KEYS)
    def delete(self, namespace: Any, key: str) -> None:
        self.error_type.delete(namespace, key)
        self.oracle.delete(namespace, key)
        assert self.error_type.get(namespace, key) is None

    @rule(namespace=NAMESPACES, key=KEYS)
    def get(self, namespace: Any, key: str) -> None:
        ours, theirs = self.error_type.get(namespace, key), self.oracle.get(namespace, key)
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert told([ours]) == told([theirs])

    @rule(prefix=PREFIXES, wanted=FILTERS)
    def search(self, prefix: Any, wanted: dict[str, Any] | None) -> None:
        ours = self.error_type.search(prefix, filter=wanted, limit=1000)
        try:
            theirs = self.oracle.search(prefix, filter=wanted, limit=1000)
        except (TypeError, ValueError):
            return  # it cannot compare these two; we find that they do not match
        assert told(ours) == told(theirs)

    @rule(prefix=PREFIXES, limit=st.integers(0, 3), offset=st.integers(0, 3))
    def pages(self, prefix: Any, limit: int, offset: int) -> None:
        every = self.error_type.search(prefix, limit=1000)
        assert self.error_type.search(prefix, limit=limit, offset=offset) == every[offset:][:limit]
        theirs = self.oracle.search(prefix, limit=limit, offset=offset)
        assert len(every[offset:][:limit]) == len(theirs)

    @rule(
        prefix=st.none() | PATHS,
        suffix=st.none() | PATHS,
        depth=st.none() | st.integers(1, 3),
        limit=st.integers(0, 4) | st.just(100),
        offset=st.integers(0, 2),
    )
    def namespaces(
        self, prefix: Any, suffix: Any, depth: int | None, limit: int, offset: int
    ) -> None:
        # Their store goes on to list a namespace in which there is nothing any more.
        filled = langgraph.InMemoryStore()
        for item in self.oracle.search((), limit=1000):
            filled.put(item.namespace, item.key, item.value)
        asked = {"prefix": prefix, "suffix": suffix, "max_depth": depth}
        ours = self.error_type.list_namespaces(**asked, limit=limit, offset=offset)
        assert ours == filled.list_namespaces(**asked, limit=limit, offset=offset)

    @rule(
        ops=st.lists(
            st.tuples(NAMESPACES, KEYS, st.none() | VALUES).map(lambda made: langgraph.PutOp(*made))
            | st.tuples(NAMESPACES, KEYS).map(lambda made: langgraph.GetOp(*made))
            | PREFIXES.map(lambda prefix: langgraph.SearchOp(prefix, limit=1000)),
            max_size=6,
        )
    )
    def batch(self, ops: list[langgraph.Op]) -> None:
        both = zip(self.error_type.batch(ops), self.oracle.batch(ops), strict=True)
        for ours, theirs in both:
            assert (ours is None) == (theirs is None)
            if isinstance(theirs, list):
                assert told(ours) == told(theirs)  # type: ignore[arg-type]
            elif theirs is not None:
                assert told([ours]) == told([theirs])


def test_it_behaves_as_langgraphs_own_store() -> None:
    """Whatever is put, deleted and looked for, in any order, alone and in batches."""
    run_state_machine_as_test(
        LikeInMemory,
        settings=settings(
            max_examples=examples(20, 40),
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
