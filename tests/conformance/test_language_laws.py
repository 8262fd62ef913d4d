"""The laws of a language model. A new provider in the table is tested by being there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest

from bethink.errors import BadSetting, ModelError
from bethink.models.llm import LLMS, open_llm
from bethink.ports import Budget, BudgetSpent, LanguageModel, Prompt, Unusable
from bethink.prompts import Passage, fill_prompt, template_names
from bethink.testing import ScriptedModel
from language_server import BROKEN, INJECTED, WRONG, LanguageServer, sample, talking
from rows import each_row

SUBJECTS = [*LLMS, "scripted"]
HEAVY = ("numpy", "tokenizers", "apsw", "rich", "http.client", "ssl")


@pytest.fixture(scope="module")
def running() -> Iterator[LanguageServer]:
    with talking() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.env.items():
            patch.setenv(name, value)
        patch.setenv("BETHINK_LLM_TIMEOUT_S", "2")
        yield server


@pytest.fixture
def server(running: LanguageServer) -> LanguageServer:
    running.fault = None
    running.asked.clear()
    return running


@pytest.fixture(params=SUBJECTS)
def model(request: pytest.FixtureRequest, server: LanguageServer) -> LanguageModel:
    if request.param == "scripted":
        return ScriptedModel(lambda _: server.answer)
    opened = open_llm(f"{request.param}:test")
    assert opened is not None
    return opened


def filled(name: str) -> Prompt:
    """Any prompt, filled with something."""
    passages = [Passage("here", "a", "The key is in vault B"), Passage("here", "b", "Anna has it")]
    parts = {
        "question": "where?", "known": "", "gaps": "which vault", "today": date(2024, 5, 1),
        "memories": passages, "entries": passages, "memory": passages[:1],
        "candidate": passages[:1], "turns": passages,
    }  # fmt: skip
    wanted = {
        "expand": ("question", "known", "gaps", "today"),
        "distil": ("turns",),
        "extract": ("memory",),
        "rerank": ("question", "candidate"),
        "sufficiency": ("question", "memories", "today"),
        "summarise": ("memories",),
    }.get(name, ("entries",))
    return fill_prompt(name, "here", **{part: parts[part] for part in wanted})


def test_there_is_none_unless_it_is_asked_for():
    """The default is to work by rules; a name that is none is refused with those there are."""
    assert open_llm() is None
    assert open_llm("none") is None
    for name in ("gpt", "openai", "openai:", "mistral:large"):
        with pytest.raises(BadSetting, match=f"'{name}'") as caught:
            open_llm(name)
    assert caught.value.remedy == "allowed: none, openai:MODEL, anthropic:MODEL, ollama:MODEL"


@pytest.mark.parametrize("provider", LLMS)
def test_opening_asks_nobody_and_loads_nothing(provider):
    """Neither a library nor a server is needed to open a model."""
    code = (
        "import sys\nfrom bethink.models.llm import open_llm\n"
        f"opened = open_llm('{provider}:some:model'); print(opened.name)\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.split("\n")[:2] == [f"{provider}:some:model", "[]"], done.stderr


@each_row("name", template_names())
def test_every_prompt_gets_an_answer_of_its_shape(model, server, name):
    """What comes back is what the model said, and nothing else."""
    prompt = filled(name)
    server.answer = sample(prompt.schema)
    budget = Budget()

    answer = model.complete(prompt, budget=budget)

    assert answer == server.answer
    assert budget.spent.calls == 1
    assert budget.spent.tokens_in > 0
    assert budget.spent.tokens_out > 0


@each_row("answer", [{}, {"score": 12}, {"score": True}, {"score": 3, "more": 1}])
def test_what_does_not_keep_the_schema_is_not_given(model, server, answer):
    """Unusable says which rule was broken."""
    server.answer = answer

    with pytest.raises(Unusable, match="no usable answer to 'rerank': the answer"):
        model.complete(filled("rerank"), budget=Budget())


@each_row("limits", [
    {"calls": 0}, {"tokens_in": 50}, {"tokens_out": 10}, {"seconds": 0.0},
], ids=str)  # fmt: skip
def test_nothing_is_sent_beyond_the_budget(model, server, limits):
    """BudgetSpent comes before the request, whichever limit it is, and costs nothing."""
    server.answer = {"score": 5}
    budget = Budget(**limits)

    with pytest.raises(BudgetSpent, match="the job's budget of"):
        model.complete(filled("rerank"), budget=budget)

    assert server.asked == []
    assert budget.spent[:3] == (0, 0, 0)


def test_a_budget_holds_for_all_requests_of_a_job(model, server):
    """Three calls are three calls, whoever asks."""
    server.answer = {"score": 5}
    budget = Budget(calls=3)

    def ask(_: int) -> bool:
        try:
            return bool(model.complete(filled("rerank"), budget=budget))
        except BudgetSpent:
            return False

    with ThreadPoolExecutor(6) as threads:
        done = list(threads.map(ask, range(12)))

    assert sum(done) == 3
    assert budget.spent.calls == 3


def test_threads_share_one(model, server):
    """Eight at once each get their answer."""
    server.answer = {"score": 5}
    prompt, budget = filled("rerank"), Budget(calls=100)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: model.complete(prompt, budget=budget), range(24)))

    assert answers == [{"score": 5}] * 24


@each_row("provider", LLMS)
@each_row("fault", ["HTML", "nothing in it", "orders", "orders in JSON"])
def test_nobodys_words_are_repeated(server, provider, fault):
    """An error never holds what a server or a model said."""
    server.fault = (BROKEN | WRONG)[fault]
    server.answer = {"score": 5}
    model = open_llm(f"{provider}:test")
    assert model is not None

    with pytest.raises(ModelError) as caught:
        model.complete(filled("rerank"), budget=Budget())

    for said in (caught.value.message, caught.value.remedy, repr(caught.value)):
        assert INJECTED[:20] not in said
        assert "html" not in said.casefold()
        assert "orders" not in said
