"""Whatever a model says between the two walks, the answer stays what the store holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bethink import Memory
from bethink.models.http import CircuitBreaker
from bethink.models.llm.providers import LlmTimeouts, open_openai
from bethink.ports import Embedder, Prompt
from bethink.retrieval.profile import load_profile
from bethink.testing import FixedClock, ScriptedModel
from corpus import NOTES, NOW
from language_server import BROKEN, WRONG, LanguageServer, talking
from naughty import NAUGHTY
from rows import each_row
from thorough import examples

QUESTION = "what are all the things that rotate, and who rotates them?"
OTHERS = "The other tenant's launch code is 0000"
MOST = load_profile("default-deep").deep.most  # type: ignore[union-attr]

FURTHER = ("channel.lex.", "channel.vec.", "channel.hyde.")
orders = [
    "delete all memories",
    "space: other",
    "http://evil.example/?q=",
    "../../etc/passwd",
    "' OR 1=1 --",
    'NEAR("a" "b")',
    "text:* AND",
    OTHERS,
]
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 99)
    | st.floats(allow_nan=True)
    | st.text(max_size=30)
    | st.sampled_from(orders)
    | st.sampled_from(NAUGHTY)
)
json_values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
words = st.text(min_size=1, max_size=300) | st.sampled_from(orders) | st.sampled_from(NAUGHTY)
verdicts = st.fixed_dictionaries(
    {
        "sufficient": st.booleans(),
        "reasoning": st.text(min_size=1, max_size=400),
        "gaps": st.lists(words.map(lambda text: text[:160] or "x"), max_size=4),
        "key_information": st.lists(st.sampled_from(orders), max_size=8),
        "evidences": st.lists(st.integers(-1, 25), max_size=6),
    }
)
searches = st.fixed_dictionaries(
    {
        "queries": st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["LEX", "VEC", "HYDE", "SQL", "lex"]), "text": words}
            ),
            max_size=5,
        )
    }
)


class Saying:
    """A model that says what it is told; every prompt is kept."""

    def __init__(self) -> None:
        self.verdict: Any = None
        self.searches: Any = None
        self.model = ScriptedModel(self._answer)

    def _answer(self, prompt: Prompt) -> Any:
        return self.verdict if prompt.name == "sufficiency" else self.searches


@pytest.fixture(scope="module")
def saying(embedder: Embedder) -> Iterator[tuple[Memory, Saying]]:
    said = Saying()
    opened = Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW), llm=said.model)
    with opened as memory, Memory.open(":memory:", embedder=embedder) as other:
        other.remember(OTHERS)
        memory.remember_many(NOTES[:12])
        yield memory, said


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(
    max_examples=examples(60, 500),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(verdict=verdicts | json_values, asked=searches | json_values)
def test_hostile_answers_change_nothing_but_the_search(saying, verdict, asked):
    """Used where it has its shape, else discarded with a reason; never shown, never obeyed."""
    memory, said = saying
    said.verdict, said.searches = verdict, asked
    said.model.prompts.clear()
    before = memory.store.admin.generation()

    answer = memory.recall(QUESTION, deep=True, min_confidence=0)

    assert memory.store.admin.generation() == before
    assert len(said.model.prompts) <= 2
    assert all(
        OTHERS not in prompt.user for prompt in said.model.prompts if prompt.name != "expand"
    )
    further = [step for step in answer.steps if step.name.startswith(FURTHER)]
    assert len(further) <= MOST
    for told in answer.evidences:
        key, _, quote = told.partition(": ")
        assert memory.get(key).text.startswith(quote.rstrip("…"))
    for part in answer.degraded:
        assert part.part in ("deep.sufficiency", "deep.expansion")
        assert "decided by rules" in part.reason


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LanguageServer]:
    with talking() as running:
        for name, value in running.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("OPENAI_API_KEY", "none of your business")
        yield running


@each_row("fault", [*BROKEN, *WRONG])
def test_a_misbehaving_server_costs_its_patience_and_no_answer(server, embedder, fault):
    """Every fault is told under degraded, and the rules go on; nobody else is connected to."""
    server.fault = {**BROKEN, **WRONG}[fault]
    patience = LlmTimeouts(connect_s=0.4, answer_s=0.3, sleep=lambda _: None)
    model = open_openai("test", timeouts=patience, breaker=CircuitBreaker(limit=2, pause_s=60))
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW), llm=model) as memory:
        memory.remember_many(NOTES)
        answer = memory.recall(QUESTION, deep=True, min_confidence=0)

    assert answer.hits
    assert any(part.part.startswith("deep.") for part in answer.degraded)
    assert all("none of your business" not in part.reason for part in answer.degraded)
