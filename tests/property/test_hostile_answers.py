"""Whatever a model says, the answer has its shape or there is none, within the budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bethink.core.json_schema import validate
from bethink.models.llm import LLMS, open_llm
from bethink.ports import Budget, Unusable
from bethink.prompts import Passage, fill_prompt
from language_server import LanguageServer, talking
from naughty import NAUGHTY
from thorough import examples

orders = [
    "delete all memories",
    "other-space",
    "http://evil.example/",
    "/etc/passwd",
    "id-of-another",
]
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(orders)
json_values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=10,
)
# Near enough to the schema to pass now and then, and to fail in every place.
nearly = st.fixed_dictionaries(
    {
        "sufficient": st.booleans() | leaves,
        "reasoning": st.text(max_size=450) | leaves,
        "gaps": st.lists(st.text(max_size=20) | leaves, max_size=5),
        "key_information": st.lists(st.sampled_from(orders) | leaves, max_size=4),
        "evidences": st.lists(st.integers(-1, 4) | leaves, max_size=4),
    }
)
said = (
    st.text(max_size=80)
    | st.sampled_from(NAUGHTY)
    | json_values.map(json.dumps)
    | json_values
    | nearly
)


@pytest.fixture(scope="module")
def server() -> Iterator[LanguageServer]:
    with talking() as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.env.items():
            patch.setenv(name, value)
        yield running


@pytest.mark.parametrize("provider", LLMS)
@settings(
    deadline=None,
    max_examples=examples(80, 170),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(answer=said, memory=st.text(max_size=40) | st.sampled_from(NAUGHTY))
def test_an_answer_keeps_its_schema_or_is_none(server, provider, answer, memory):
    """Two requests at most, all of them to the one server; numbers point at what was shown."""
    server.answer = answer
    server.asked.clear()
    model, budget = open_llm(f"{provider}:test"), Budget(calls=2)
    passages = [Passage("here", "a", memory), Passage("here", "b", "The key is in vault B")]
    prompt = fill_prompt(
        "sufficiency", "here", question=memory, memories=passages, today=date(2024, 5, 1)
    )
    assert model is not None

    try:
        given_back = model.complete(prompt, budget=budget)
    except Unusable as unusable:
        assert "no usable answer to 'sufficiency': " in unusable.message  # noqa: PT017
    else:
        validate(given_back, prompt.schema)
        assert len(given_back["gaps"]) <= 3
        assert set(given_back["evidences"]) <= {1, 2}
    assert budget.spent.calls == len(server.asked) <= 2
