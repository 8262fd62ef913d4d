"""Language models behind a server, which may do anything."""

from __future__ import annotations

import json
import re
import socket
from email.utils import formatdate
from time import time

import pytest

from bethink.core.json_schema import without_limits
from bethink.errors import BadSetting, BadText, ModelError
from bethink.models.http import CircuitBreaker
from bethink.models.llm import LLMS
from bethink.models.llm.providers import (
    LlmTimeouts,
    llm_timeouts_from,
    open_anthropic,
    open_ollama,
    open_openai,
)
from bethink.ports import Budget, BudgetSpent, Unusable
from bethink.prompts import Passage, fill_prompt
from embedding_server import ENDLESS
from language_server import BROKEN, INJECTED, WRONG, refusing, talking, tool_call
from rows import each_row

KEY = "sk-never-to-be-seen"
OPEN = {"openai": open_openai, "anthropic": open_anthropic, "ollama": open_ollama}
# Waits between tries are left out, so that a fault costs what the fault itself takes.
PATIENT = LlmTimeouts(connect_s=60, answer_s=60, sleep=lambda _: None)


@pytest.fixture(scope="module")
def running():
    with talking() as server:
        yield server


@pytest.fixture
def server(running, monkeypatch):
    running.fault, running.answer = None, {"score": 7}
    running.asked.clear()
    for name, value in running.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    return running


@pytest.fixture(params=list(OPEN))
def provider(request):
    return request.param


@pytest.fixture
def model(server, provider):
    """Asked every time, whatever happened before."""
    return OPEN[provider]("test", timeouts=PATIENT, breaker=CircuitBreaker(limit=99, pause_s=0))


def prompt(text: str = "The key is in vault B"):
    return fill_prompt("rerank", "here", question="where?", candidate=[Passage("here", "a", text)])


def failing(times, fault, answer=None):
    """A fault that passes after so many requests."""
    left = [fault] * times

    def act(asked, usual):
        if left:
            left.pop()(asked, usual)
        else:
            asked.give(asked.shape(answer or usual))

    return act


def test_every_provider_is_tried_here():
    """A new one needs its place in these tests."""
    assert list(OPEN) == list(LLMS)


def test_each_protocol_is_spoken(server, model, provider):
    """Path, key, limits and schema are what that server expects."""
    asked = prompt()

    model.complete(asked, budget=Budget())

    path, headers, body = server.asked[0]
    shape = without_limits(asked.schema)
    two = [{"role": "system", "content": asked.system}, {"role": "user", "content": asked.user}]
    headers = {name.casefold(): value for name, value in headers.items()}
    if provider == "openai":
        assert (path, headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
        assert body == {
            "model": "test", "messages": two, "stream": False, "max_tokens": 100, "temperature": 0,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "rerank", "strict": True, "schema": shape},
            },
        }  # fmt: skip
    elif provider == "anthropic":
        assert (path, headers["x-api-key"]) == ("/v1/messages", KEY)
        assert headers["anthropic-version"] == "2023-06-01"
        assert body == {
            "model": "test", "system": asked.system, "messages": two[1:], "max_tokens": 100,
            "tools": [
                {"name": "rerank", "description": "Receives the answer.", "input_schema": shape}
            ],
            "tool_choice": {"type": "tool", "name": "rerank", "disable_parallel_tool_use": True},
        }  # fmt: skip
    else:
        assert (path, "authorization" in headers) == ("/api/chat", False)
        assert body == {
            "model": "test", "messages": two, "stream": False, "format": shape,
            "options": {"temperature": 0, "num_predict": 100, "num_ctx": 4096},
        }  # fmt: skip


@each_row("fault", BROKEN)
def test_every_fault_of_a_server_is_a_sentence(server, model, fault, monkeypatch):
    """ModelError, an endless one's too, without a word of the server's or of the key."""
    server.fault = BROKEN[fault]

    with monkeypatch.context() as patch:
        if fault in ENDLESS:
            patch.setattr(model, "_timeouts", PATIENT._replace(answer_s=0.5))
        with pytest.raises(ModelError) as caught:
            model.complete(prompt(), budget=Budget())

    assert not isinstance(caught.value, Unusable | BudgetSpent)
    for said in (caught.value.message, caught.value.remedy, repr(caught.value), repr(model)):
        assert KEY not in said
        assert "previous instructions" not in said
        assert "\n" not in said
    server.fault = None
    assert model.complete(prompt(), budget=Budget()) == {"score": 7}


@each_row("fault", WRONG)
def test_every_wrong_answer_is_a_sentence(server, model, fault):
    """The model is asked once more, told why; then Unusable names what is wrong in our words."""
    server.fault = WRONG[fault]
    budget = Budget()

    with pytest.raises(Unusable, match="no usable answer to 'rerank': ") as caught:
        model.complete(prompt(), budget=budget)

    told = caught.value.message.rpartition("'rerank': ")[2]
    assert INJECTED[:20] not in caught.value.message
    assert budget.spent.calls == len(server.asked) == 2
    assert f"The previous answer was rejected: {told}. Answer again." in json.dumps(server.asked[1])
    assert "not taken" not in json.dumps(server.asked[0])


@each_row("fault", WRONG)
def test_a_wrong_answer_may_be_put_right(server, model, fault):
    """The second answer is as good as a first one."""
    server.fault = failing(1, WRONG[fault])

    assert model.complete(prompt(), budget=Budget()) == {"score": 7}


def test_wrong_answers_do_not_close_the_door(server, provider):
    """A server that answers is asked on, however useless the answers to one prompt are."""
    model = OPEN[provider]("test", timeouts=PATIENT)
    server.fault = WRONG["orders"]
    for _ in range(4):
        with pytest.raises(Unusable):
            model.complete(prompt(), budget=Budget())

    server.fault = None

    assert model.complete(prompt(), budget=Budget()) == {"score": 7}


def test_a_refusal_is_taken_as_one(server, model, provider):
    """Asking again would get the same; Ollama has no word for it and just says nothing."""
    server.fault = refusing

    with pytest.raises(Unusable, match="no usable" if provider == "ollama" else "refused to"):
        model.complete(prompt(), budget=Budget())

    assert len(server.asked) == (2 if provider == "ollama" else 1)


def test_openais_refusal_field_is_one_too(server):
    """A refusal that comes as a field of the message instead of content."""

    def refuse(asked, answer):
        shaped = asked.shape("")
        shaped["choices"][0]["message"] = {"content": None, "refusal": INJECTED}
        asked.give(shaped)

    server.fault = refuse

    with pytest.raises(Unusable, match="refused to answer") as caught:
        open_openai("test").complete(prompt(), budget=Budget())
    assert INJECTED not in caught.value.message


@each_row("text", [
    '```json\n{"score": 7}\n```', '```\n{"score": 7}\n```', ' \n{"score": 7}\n',
    'Here it is:\n```json\n{\n "score": 7\n}\n```\nAnything else?',
    '<think>\n{"score": 3} or rather\n</think>\n\n{"score": 7}',
])  # fmt: skip
def test_wrapping_is_taken_off(server, model, text):
    """Code fences and what a model thought aloud before it answered; no second request."""
    server.answer = text

    assert model.complete(prompt(), budget=Budget()) == {"score": 7}
    assert len(server.asked) == 1


@each_row("fault", ["429", "500", "503", "reset", "cut short"])
def test_what_may_pass_is_tried_again(server, model, fault):
    """Twice, a little later each time; every try is a call of the budget."""
    server.fault, budget = failing(2, BROKEN[fault]), Budget()

    assert model.complete(prompt(), budget=budget) == {"score": 7}
    assert len(server.asked) == budget.spent.calls == 3


@each_row("status", [408, 409, 425, 501])
def test_which_refusals_may_pass(server, model, status):
    """A time-out or conflict on the server's side may; a 4xx of another kind will not."""
    server.fault = failing(1, lambda asked, _: asked.give({}, status))

    if status == 425:
        with pytest.raises(ModelError, match="status 425"):
            model.complete(prompt(), budget=Budget())
    else:
        assert model.complete(prompt(), budget=Budget()) == {"score": 7}


@each_row("fault", ["401", "404", "redirect", "HTML", "nothing in it", "50 MB"])
def test_what_will_not_pass_is_not_tried_again(server, model, fault):
    """The same question would get the same answer."""
    server.fault = BROKEN[fault]

    with pytest.raises(ModelError):
        model.complete(prompt(), budget=Budget())

    assert len(server.asked) == 1


def test_a_server_that_asks_for_patience_gets_it(server, provider):
    """Retry-After is kept where there is time for it; else the model has failed."""
    slept: list[float] = []
    model = OPEN[provider]("test", timeouts=LlmTimeouts(sleep=slept.append))
    server.fault = failing(1, lambda asked, _: asked.give({}, 429, Retry_After="3"))

    assert model.complete(prompt(), budget=Budget()) == {"score": 7}
    assert slept == [3.0]

    server.fault = BROKEN["429 for long"]
    with pytest.raises(ModelError, match="status 429"):
        model.complete(prompt(), budget=Budget())
    assert slept == [3.0]


@each_row("date", ["Wed, 21 Oct 2015 07:28:00 GMT", "soon", ""])
def test_a_date_that_is_over_or_none_is_not_waited_for(server, model, date):
    """Retry-After may be a date; one that cannot be read counts as none."""
    server.fault = failing(1, lambda asked, _: asked.give({}, 429, Retry_After=date))

    assert model.complete(prompt(), budget=Budget()) == {"score": 7}


def test_a_date_to_come_is_waited_for(server, provider):
    """In an hour is too late for this answer."""
    model = OPEN[provider]("test", timeouts=PATIENT)
    later = formatdate(time() + 3600, usegmt=True)
    server.fault = failing(1, lambda asked, _: asked.give({}, 429, Retry_After=later))

    with pytest.raises(ModelError, match="status 429"):
        model.complete(prompt(), budget=Budget())

    assert len(server.asked) == 1


def test_a_tool_call_is_read_as_the_answer(server, model):
    """Small models answer so, also where no tool was offered."""
    server.fault = tool_call

    assert model.complete(prompt(), budget=Budget()) == {"score": 7}


def test_tries_need_a_budget_too(server, model):
    """When there is no call left for a second try, the server's failure is what is said."""
    server.fault, budget = BROKEN["500"], Budget(calls=1)

    with pytest.raises(ModelError, match="status 500, and the budget allows no retry") as caught:
        model.complete(prompt(), budget=budget)

    assert not isinstance(caught.value, BudgetSpent)
    assert len(server.asked) == 1


def test_putting_right_needs_a_budget_too(server, model):
    """A second answer is not asked for beyond it."""
    server.fault, budget = WRONG["orders"], Budget(calls=1)

    with pytest.raises(BudgetSpent):
        model.complete(prompt(), budget=budget)

    assert len(server.asked) == 1


def test_a_budgets_time_is_the_longest_wait(server, provider):
    """The patience of the settings does not outlast the job's."""
    server.fault = BROKEN["hang"]
    model = OPEN[provider]("test", timeouts=LlmTimeouts(answer_s=3600))

    with pytest.raises(ModelError, match="did not answer"):
        model.complete(prompt(), budget=Budget(seconds=0.3))


def test_tokens_are_counted_as_the_server_counts(server, model):
    """Cached ones included."""
    budget = Budget()

    model.complete(prompt(), budget=budget)

    assert budget.spent[:3] == (1, 100, 10)


def test_tokens_are_estimated_where_nobody_counts(server, model):
    """Also where the count is nonsense: a third of the bytes."""

    def uncounted(asked, answer):
        shaped = asked.shape(answer)
        for key in ("prompt_eval_count", "eval_count"):
            shaped.pop(key, None)
        shaped["usage"] = {"prompt_tokens": -5, "completion_tokens": "many", "input_tokens": True}
        asked.give(shaped)

    server.fault, budget, asked = uncounted, Budget(), prompt()

    model.complete(asked, budget=budget)

    read = len(asked.system + asked.user + json.dumps(asked.schema))
    assert budget.spent.tokens_in == pytest.approx(read / 3, abs=1)
    assert budget.spent.tokens_out == 4


@each_row("unknown", [1, 2])
def test_a_server_is_asked_in_a_form_it_knows(server, model, provider, unknown):
    """Schema, then JSON, then words that hold the schema; what worked is remembered."""
    if provider == "anthropic":
        unknown = 1
    server.fault = failing(unknown, lambda asked, _: asked.give({"error": INJECTED}, 400))
    asked = prompt()

    assert model.complete(asked, budget=Budget()) == {"score": 7}
    assert model.complete(asked, budget=Budget()) == {"score": 7}

    bodies = [body for _, _, body in server.asked]
    assert len(bodies) == unknown + 2
    assert bodies[-1] == bodies[-2]
    assert not {"tools", "tool_choice"} & bodies[-1].keys()
    assert json.dumps(asked.schema) in json.dumps(bodies[-1]).encode().decode("unicode_escape")
    loosest = {"openai": "response_format", "ollama": "format", "anthropic": "tools"}[provider]
    assert (loosest in bodies[-1]) == (unknown == 1 and provider != "anthropic")


def test_a_known_form_is_not_given_up(server, model):
    """After the first success a 400 is about the prompt, and costs one request."""
    model.complete(prompt(), budget=Budget())
    server.asked.clear()
    server.fault = lambda asked, _: asked.give({}, 400)

    with pytest.raises(ModelError, match="status 400"):
        model.complete(prompt(), budget=Budget())

    assert len(server.asked) == 1
    server.fault = None
    assert model.complete(prompt(), budget=Budget()) == {"score": 7}


def test_a_server_that_knows_no_form_is_said(server, model, provider):
    """All forms are tried, and none is remembered."""
    server.fault = lambda asked, _: asked.give({}, 422)

    with pytest.raises(ModelError, match="status 422"):
        model.complete(prompt(), budget=Budget())

    assert len(server.asked) == (2 if provider == "anthropic" else 3)
    server.fault = None
    assert model.complete(prompt(), budget=Budget()) == {"score": 7}


def test_a_server_that_does_not_answer_is_left_alone(server, provider):
    """After three failures no time is lost any more, nor any call, for half a minute."""
    now = [0.0]
    breaker = CircuitBreaker(clock=lambda: now[0])
    model = OPEN[provider]("test", timeouts=PATIENT, breaker=breaker)
    server.fault = BROKEN["401"]
    for _ in range(3):
        with pytest.raises(ModelError):
            model.complete(prompt(), budget=Budget())
        now[0] += 1.0
    server.fault, budget = None, Budget()

    with pytest.raises(ModelError, match="refused the credentials"):
        model.complete(prompt(), budget=budget)

    assert len(server.asked) == 3
    assert budget.spent[:3] == (0, 0, 0)
    now[0] += 30.0
    assert model.complete(prompt(), budget=Budget()) == {"score": 7}


def test_a_spent_budget_says_nothing_about_the_server(server, provider):
    """The next job is served at once."""
    model = OPEN[provider]("test", timeouts=PATIENT)
    for _ in range(4):
        with pytest.raises(BudgetSpent):
            model.complete(prompt(), budget=Budget(calls=0))

    assert model.complete(prompt(), budget=Budget()) == {"score": 7}


def test_no_other_server_is_ever_asked(server, model, monkeypatch):
    """Neither where a redirect points nor a proxy of the environment."""
    with talking() as elsewhere:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, elsewhere.url)
        for status in (301, 302, 307, 308):
            server.fault = lambda asked, _, status=status: asked.give(
                {}, status, Location=f"{elsewhere.url}{asked.path}"
            )
            with pytest.raises(ModelError, match="redirects to another address"):
                model.complete(prompt(), budget=Budget())

        assert elsewhere.asked == []


def test_nobody_listening_is_said(monkeypatch, provider):
    """A refused connection names the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("OLLAMA_HOST", address)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://{address}")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://{address}")

    with pytest.raises(ModelError, match=re.escape(address) + ".* cannot be reached"):
        OPEN[provider]("test", timeouts=PATIENT).complete(prompt(), budget=Budget())


@each_row("address", ["http://no-such-host.invalid:1", "https://127.0.0.1:{port}"])
def test_a_name_nobody_has_and_a_server_without_tls_are_said(
    server, monkeypatch, provider, address
):
    """Failing models like any other, by their address."""
    for name in server.env:
        monkeypatch.setenv(name, address.format(port=server.server_port))

    with pytest.raises(ModelError, match=r"no-such-host\.invalid|cannot be reached"):
        OPEN[provider]("test", timeouts=PATIENT).complete(prompt(), budget=Budget())


def test_being_let_in_has_its_own_time(monkeypatch):
    """A host that takes nobody in costs the time for that, not the time for an answer."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{address[1]}")
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        patience = LlmTimeouts(connect_s=0.05, answer_s=3600.0, sleep=lambda _: None)

        with pytest.raises(ModelError, match="did not answer in time"):
            open_ollama("test", timeouts=patience).complete(prompt(), budget=Budget())

        for one in waiting:
            one.close()


@pytest.mark.parametrize(
    ("make", "variable", "base"),
    [
        (open_openai, "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        (open_anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    ],
)
def test_a_key_is_needed_before_anything_is_sent(monkeypatch, make, variable, base):
    """Without one nothing leaves this machine; one that cannot be a key is not shown."""
    monkeypatch.delenv(base, raising=False)
    monkeypatch.delenv(variable, raising=False)
    budget = Budget()
    with pytest.raises(ModelError, match=f"{variable} is not set"):
        make("test").complete(prompt(), budget=budget)
    assert budget.spent[:3] == (0, 0, 0)

    monkeypatch.setenv(variable, "sk-secret\nX-Evil: yes")
    with pytest.raises(ModelError, match="characters that are not valid in a key") as caught:
        make("test").complete(prompt(), budget=Budget())
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("make", [open_openai, open_anthropic])
def test_a_server_of_ones_own_needs_no_key(server, monkeypatch, make):
    """Then none is sent."""
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    assert make("test").complete(prompt(), budget=Budget()) == {"score": 7}
    assert not {"authorization", "x-api-key"} & {name.lower() for name in server.asked[0][1]}


def test_openai_itself_is_asked_in_its_own_words(monkeypatch):
    """Its newer models know the limit by another name and no temperature."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    model = open_openai("gpt")
    body = model._protocol.request_formats[0](model._make_request(prompt(), ""))

    assert str(model._protocol.server.url) == "https://api.openai.com/v1/chat/completions"
    assert body["max_completion_tokens"] == 100
    assert not {"max_tokens", "temperature"} & body.keys()


def test_anthropics_address_is_the_usual_one(monkeypatch):
    """Unless the variable says otherwise; one that is none is refused on opening."""
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    assert str(open_anthropic("x")._protocol.server.url) == "https://api.anthropic.com/v1/messages"

    monkeypatch.setenv("ANTHROPIC_BASE_URL", "ftp://box")
    with pytest.raises(BadSetting, match="ANTHROPIC_BASE_URL"):
        open_anthropic("x")


def test_a_long_prompt_gets_a_window_it_fits(server):
    """Ollama would drop its beginning without a word."""
    asked = prompt("word " * 300)._replace(user="word " * 8000)

    open_ollama("test").complete(asked, budget=Budget())

    assert server.asked[0][2]["options"]["num_ctx"] == 16_384


def test_room_to_think_can_be_given(server, provider):
    """It is added to the answer's, in the request and in the budget."""
    model = OPEN[provider]("test", timeouts=PATIENT._replace(thinking_tokens=500))

    with pytest.raises(BudgetSpent):
        model.complete(prompt(), budget=Budget(tokens_out=599))
    assert model.complete(prompt(), budget=Budget(tokens_out=600)) == {"score": 7}
    assert re.search(r"(max_tokens|num_predict)\": 600", json.dumps(server.asked[0][2]))


def test_an_answer_without_room_says_how_to_make_some(server, model):
    """A model that thinks first may have no tokens left to answer with."""
    server.fault = WRONG["too long"]

    with pytest.raises(Unusable, match="longer than 100 tokens") as caught:
        model.complete(prompt(), budget=Budget())

    assert "BETHINK_LLM_THINKING_TOKENS" in caught.value.remedy


def test_any_text_can_be_sent(server, model):
    """Half a character of a question is replaced, not sent on and not a traceback."""
    asked = fill_prompt(
        "rerank", "here", question="abc\ud800def", candidate=[Passage("here", "a", "\x00")]
    )

    try:
        assert model.complete(asked, budget=Budget()) == {"score": 7}
    except BadText:
        pytest.fail("a prompt is no place to refuse a text")
    assert "abc?def" in json.dumps(server.asked[0][2])


def test_patience_can_be_set():
    """In seconds and tokens; anything else is refused by the variable's name."""
    assert llm_timeouts_from({})[:3] == (5.0, 60.0, 0)
    given = {"BETHINK_LLM_TIMEOUT_S": "20", "BETHINK_LLM_THINKING_TOKENS": "2000"}
    assert llm_timeouts_from(given)[:3] == (5.0, 20.0, 2000)
    for name, wrong in (("TIMEOUT_S", "soon"), ("TIMEOUT_S", "0"), ("THINKING_TOKENS", "-1"),
                        ("THINKING_TOKENS", "1" * 5000), ("THINKING_TOKENS", "lots")):  # fmt: skip
        with pytest.raises(BadSetting, match=f"BETHINK_LLM_{name}"):
            llm_timeouts_from({f"BETHINK_LLM_{name}": wrong})
