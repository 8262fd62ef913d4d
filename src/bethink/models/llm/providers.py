"""Language model servers (Ollama, OpenAI, Anthropic): their client and their protocols.

Each request is within a budget, and its answer checked. Transient failures are retried; a
server that does not answer is skipped for a while (circuit breaker); an answer that violates
the schema is requested once more, with a description of the problem. The words of a server or
a model are never part of an error: they may come from a memory and target the reader of the
error.

``llm = "ollama:MODEL"``: ``OLLAMA_HOST`` is the address. ``llm = "openai:MODEL"``: any
server with OpenAI's chat protocol, with ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``. ``llm =
"anthropic:MODEL"``: the Messages protocol, with ``ANTHROPIC_API_KEY`` and
``ANTHROPIC_BASE_URL``; the answer is requested as the input of a tool with the schema.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from time import monotonic, sleep
from typing import Any

from bethink.core.json_schema import SchemaViolation, validate, without_limits
from bethink.core.json_values import Json, parse_strict_json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadSetting, ModelError, Refused
from bethink.models.http import (
    OPENAI_HOST,
    CircuitBreaker,
    HttpReply,
    HttpRequest,
    ModelServer,
    keyed_server,
    ollama_server,
    openai_server,
    read_timeout,
)
from bethink.ports import Budget, BudgetSpent, Prompt, Unusable
from bethink.ports.models import BudgetReservation


class CompletionRequest(NamedTuple):
    """A completion request, before a server's protocol formats it.

    ``schema`` is the complete schema, ``outline_schema`` the same without limits.
    """

    model: str
    task: str
    system: str
    user: str
    schema: Mapping[str, object]
    outline_schema: Mapping[str, object]
    output_tokens: int
    input_tokens: int

    def with_schema_in_text(self) -> CompletionRequest:
        """Return the request with the schema in the text, for servers without schemas."""
        schema = json.dumps(self.schema, ensure_ascii=False)
        instruction = f"Answer with one JSON object of this JSON Schema and nothing else:\n{schema}"
        return self._replace(system=f"{self.system}\n\n{instruction}")


class Completion(NamedTuple):
    """A completion: a text, or an object; counts are None where the server did not report them."""

    content: str | Json
    is_truncated: bool = False
    is_refused: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None


class ChatProtocol(NamedTuple):
    """The request and response format of one kind of language model server.

    ``request_formats`` are its ways of requesting JSON, the strictest first; a server that
    rejects one is sent the next. ``read_completion`` raises ordinary Python errors on an
    invalid answer.
    """

    provider: str
    server: ModelServer
    request_formats: tuple[Callable[[CompletionRequest], dict[str, object]], ...]
    read_completion: Callable[[Any], Completion]


def sum_usage(usage: Any, *names: str) -> int | None:
    """Sum the token counts reported under these names; None if there are none."""
    found = [usage[name] for name in names if usage.get(name) is not None]
    sane = all(type(count) is int and 0 <= count < 1 << 32 for count in found)
    return sum(found) if found and sane else None


# Some servers include the reasoning of the model.
_THINKING_BLOCK = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_CODE_FENCE = "```"


def parse_object(text: str) -> Json:
    """Parse the one JSON object of a text, without code fences; raise SchemaViolation otherwise.

    Strict: no NaN, no duplicate keys. The message never repeats the text.
    """
    thought = _THINKING_BLOCK.match(text)
    text = text[thought.end() :] if thought else text
    try:
        made = parse_strict_json(_strip_code_fence(text))
    except Refused as error:
        found = error.__cause__
        if isinstance(found, json.JSONDecodeError):
            place = f"line {found.lineno}, column {found.colno}"
            raise SchemaViolation(f"it is not JSON ({place})") from error
        raise SchemaViolation(
            "it is JSON with the same key twice, or with numbers or nesting that cannot be read"
        ) from error
    if not isinstance(made, dict):
        raise SchemaViolation("it is not one JSON object")
    return made


def _strip_code_fence(text: str) -> str:
    """Return the content of the only code block; the text, if there is not exactly one.

    Line by line: a pattern would take forever over many unclosed blocks.
    """
    lines = text.split("\n")
    marks = [number for number, line in enumerate(lines) if line.startswith(_CODE_FENCE)]
    if len(marks) != 2 or lines[marks[1]].strip() != _CODE_FENCE:
        return text
    return "\n".join(lines[marks[0] + 1 : marks[1]])


MAX_REPLY_BYTES = 4 << 20
# English has about four bytes per token, most other languages two to three.
_BYTES_PER_TOKEN = 3


def estimated_tokens(text: str) -> int:
    """Estimate a text's tokens from its bytes, rather too high than too low."""
    return -(-len(text.encode(errors="replace")) // _BYTES_PER_TOKEN)


@dataclass(slots=True)
class BilledRequest:
    """A request charged to a budget; each call is one attempt.

    ``completion`` is the result of the successful attempt. ``charge`` is the first attempt's
    price, reserved by the caller.
    """

    protocol: ChatProtocol
    body: dict[str, object]
    request: CompletionRequest
    budget: Budget
    charge: BudgetReservation | None
    connect_s: float
    completion: Completion | None = None
    failure: str = ""

    def __call__(self, left_s: float) -> HttpReply:
        """Send the request once and record its cost."""
        with self.charge or self._reserve_retry() as charge:
            self.charge = None  # the next attempt is charged separately
            request = HttpRequest(self.body, MAX_REPLY_BYTES, left_s, self.connect_s)
            server = self.protocol.server
            server.headers()  # raises where a key is missing: then nothing is sent
            # Once sent, the request may be billed, whether or not an answer arrives.
            charge.commit(self.request.input_tokens, 0)
            try:
                reply = server.post_once(request)
            except ModelError as error:
                self.failure = error.message
                raise
            self.failure = f"{server.name} answered with status {reply.status}"
            if reply.status == HTTPStatus.OK:
                read, problem = self.protocol.read_completion, "sent a reply that is not an answer"
                self.completion = server.parse(reply, read, problem)
                charge.commit(*self._price(self.completion))
            else:
                charge.commit(0, 0)
        return reply

    def _reserve_retry(self) -> BudgetReservation:
        request = self.request
        try:
            return self.budget.reserve(request.input_tokens, request.output_tokens)
        except BudgetSpent as spent:
            # Report the server's failure: without it there would be no second attempt.
            raise ModelError(f"{self.failure}, and the budget allows no retry") from spent

    def _price(self, completion: Completion) -> tuple[int, int]:
        written = (
            completion.content if isinstance(completion.content, str) else str(completion.content)
        )
        return (
            self.request.input_tokens if completion.tokens_in is None else completion.tokens_in,
            estimated_tokens(written) if completion.tokens_out is None else completion.tokens_out,
        )


LLM_TIMEOUT_VARIABLE = "BETHINK_LLM_TIMEOUT_S"
THINKING_VARIABLE = "BETHINK_LLM_THINKING_TOKENS"

_MAX_ANSWERS = 2
_MAX_THINKING_TOKENS = 100_000
_FORMAT_REJECTED_STATUSES = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


class LlmTimeouts(NamedTuple):
    """Timeouts to connect and to answer, the thinking token limit, and the clock."""

    connect_s: float = 5.0
    answer_s: float = 60.0
    thinking_tokens: int = 0
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], None] = sleep


class ServedLanguageModel:
    """A language model behind a server; its answers follow the prompt's schema."""

    def __init__(
        self,
        protocol: ChatProtocol,
        model: str,
        *,
        timeouts: LlmTimeouts | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self._protocol, self._model = protocol, model
        self._timeouts = timeouts or llm_timeouts_from(os.environ)
        self._breaker = breaker or CircuitBreaker()
        self._known_format: int | None = None

    @property
    def name(self) -> str:
        return f"{self._protocol.provider}:{self._model}"

    def complete(self, prompt: Prompt, *, budget: Budget) -> Json:
        """Return an object that matches the prompt's schema; one correction is allowed."""
        problem, remedy = "", ""
        for _ in range(_MAX_ANSWERS):
            said = self._request_completion(self._make_request(prompt, problem), budget)
            if said.is_refused:
                raise Unusable(f"{self._protocol.server.name} refused to answer {prompt.name!r}")
            try:
                return _validated_object(said, prompt)
            except SchemaViolation as misfit:
                problem = str(misfit)
                remedy = (
                    f"{THINKING_VARIABLE} sets the tokens for reasoning"
                    if said.is_truncated
                    else ""
                )
        raise Unusable(
            f"{self._protocol.server.name} gave no usable answer to {prompt.name!r}: {problem}",
            remedy=remedy,
        )

    def _make_request(self, prompt: Prompt, problem: str) -> CompletionRequest:
        # The rejected answer is not repeated: it may contain instructions from a memory.
        note = f"\n\nThe previous answer was rejected: {problem}. Answer again." if problem else ""
        system, user, schema = prompt.system, prompt.user + note, prompt.schema
        return CompletionRequest(
            self._model,
            prompt.name,
            system,
            user,
            schema,
            without_limits(schema),
            prompt.output_tokens + self._timeouts.thinking_tokens,
            estimated_tokens(system + user + json.dumps(schema)),
        )

    def _request_completion(
        self, completion_request: CompletionRequest, budget: Budget
    ) -> Completion:
        """Request a completion in the strictest format that the server supports."""
        protocol, known = self._protocol, self._known_format
        for form in range(len(protocol.request_formats)) if known is None else (known,):
            # Before the breaker: an exhausted budget says nothing about the server.
            with budget.reserve(
                completion_request.input_tokens, completion_request.output_tokens
            ) as charge:
                body = protocol.request_formats[form](completion_request)
                about = completion_request, budget, charge, self._timeouts.connect_s
                request = BilledRequest(protocol, body, *about)
                wait_s = min(self._timeouts.answer_s, budget.seconds_left)
                status = self._breaker(partial(self._send, request, wait_s))
            if request.completion is not None:
                self._known_format = form
                return request.completion
        raise protocol.server.error(f"answered {completion_request.task!r} with status {status}")

    def _send(self, request: BilledRequest, wait_s: float) -> int:
        """Send with retry; return 200, or a status that rejects this request format."""
        timeouts, server = self._timeouts, self._protocol.server
        reply = server.retry(request, timeouts, timeouts.clock() + wait_s)
        if reply.status not in _FORMAT_REJECTED_STATUSES:
            server.check_status(reply.status)
        return reply.status


def _validated_object(completion: Completion, prompt: Prompt) -> Json:
    if completion.is_truncated:
        raise SchemaViolation(f"it was longer than {prompt.output_tokens} tokens")
    made = (
        parse_object(completion.content)
        if isinstance(completion.content, str)
        else completion.content
    )
    validate(made, prompt.schema)
    return made


def llm_timeouts_from(env: Mapping[str, str]) -> LlmTimeouts:
    """Return the default timeouts, overridden by the environment."""
    usual, given = LlmTimeouts(), env.get(THINKING_VARIABLE, "").strip()
    if given and not (given.isdecimal() and int(given[:9]) <= _MAX_THINKING_TOKENS):
        raise BadSetting(
            f"{THINKING_VARIABLE} is {given!r}, but must be a number up to {_MAX_THINKING_TOKENS:,}"
        )
    return LlmTimeouts(
        answer_s=read_timeout(env, LLM_TIMEOUT_VARIABLE, usual.answer_s),
        thinking_tokens=int(given or usual.thinking_tokens),
    )


Body = dict[str, object]

_MIN_CONTEXT_WINDOW = 4096


def open_ollama(
    model: str, *, timeouts: LlmTimeouts | None = None, breaker: CircuitBreaker | None = None
) -> ServedLanguageModel:
    """Create the language model of Ollama's chat protocol."""
    protocol = ChatProtocol(
        "ollama",
        ollama_server("/api/chat", model),
        request_formats=(
            lambda request: _ollama_body(request) | {"format": request.outline_schema},
            lambda request: _ollama_body(request.with_schema_in_text()) | {"format": "json"},
            lambda request: _ollama_body(request.with_schema_in_text()),
        ),
        read_completion=_read_ollama,
    )
    return ServedLanguageModel(protocol, model, timeouts=timeouts, breaker=breaker)


def _chat_body(request: CompletionRequest, **settings: object) -> Body:
    messages = [
        {"role": "system", "content": request.system},
        {"role": "user", "content": request.user},
    ]
    return {"model": request.model, "messages": messages, "stream": False, **settings}


def _ollama_body(request: CompletionRequest) -> Body:
    # By default Ollama silently drops the beginning of a prompt that exceeds a small window.
    # Each new size reloads the model, so there are few sizes.
    needed = request.input_tokens + request.output_tokens
    window = max(_MIN_CONTEXT_WINDOW, 1 << (needed - 1).bit_length())
    options = {"temperature": 0, "num_predict": request.output_tokens, "num_ctx": window}
    return _chat_body(request, options=options)


def _tool_input(message: Any) -> Any:
    """Return the arguments of a tool call: some models answer so without being offered a tool."""
    calls = message.get("tool_calls") or ()
    return calls[0]["function"]["arguments"] if calls else message.get("content")


def _read_ollama(answer: Any) -> Completion:
    message = answer["message"]
    content = message.get("content") or _tool_input(message)
    if not isinstance(content, str | dict):
        raise TypeError("no text")
    return Completion(
        content,
        is_truncated=answer.get("done_reason") == "length",
        tokens_in=sum_usage(answer, "prompt_eval_count"),
        tokens_out=sum_usage(answer, "eval_count"),
    )


def open_openai(
    model: str, *, timeouts: LlmTimeouts | None = None, breaker: CircuitBreaker | None = None
) -> ServedLanguageModel:
    """Create the language model of OpenAI's chat protocol."""
    server = openai_server("/chat/completions", model)
    body = partial(_openai_body, is_home=server.url.host == OPENAI_HOST)
    protocol = ChatProtocol(
        "openai",
        server,
        request_formats=(
            lambda request: body(
                request,
                response_format={
                    "type": "json_schema",
                    "json_schema": {
                        "name": request.task,
                        "strict": True,
                        "schema": request.outline_schema,
                    },
                },
            ),
            lambda request: body(
                request.with_schema_in_text(), response_format={"type": "json_object"}
            ),
            lambda request: body(request.with_schema_in_text()),
        ),
        read_completion=_read_openai,
    )
    return ServedLanguageModel(protocol, model, timeouts=timeouts, breaker=breaker)


def _openai_body(request: CompletionRequest, *, is_home: bool, **settings: object) -> Body:
    # OpenAI's reasoning models refuse the old name of the limit, and any temperature.
    if is_home:
        return _chat_body(request, max_completion_tokens=request.output_tokens, **settings)
    return _chat_body(request, max_tokens=request.output_tokens, temperature=0, **settings)


def _read_openai(answer: Any) -> Completion:
    choice = answer["choices"][0]
    message, ended = choice["message"], choice.get("finish_reason")
    content = message.get("content") or _tool_input(message)
    is_refused = ended == "content_filter" or bool(message.get("refusal"))
    if not isinstance(content, str | dict) and not is_refused and ended != "length":
        raise ValueError("no text")
    usage = answer.get("usage") or {}
    return Completion(
        content or "",
        is_truncated=ended == "length",
        is_refused=is_refused,
        tokens_in=sum_usage(usage, "prompt_tokens"),
        tokens_out=sum_usage(usage, "completion_tokens"),
    )


ANTHROPIC_BASE_VARIABLE = "ANTHROPIC_BASE_URL"
ANTHROPIC_KEY_VARIABLE = "ANTHROPIC_API_KEY"
_ANTHROPIC_VERSION = "2023-06-01"
_INPUT_TOKEN_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_TRUNCATED_REASONS = ("max_tokens", "model_context_window_exceeded")


def open_anthropic(
    model: str, *, timeouts: LlmTimeouts | None = None, breaker: CircuitBreaker | None = None
) -> ServedLanguageModel:
    """Create the language model of Anthropic's Messages protocol."""
    protocol = ChatProtocol(
        "anthropic",
        keyed_server(
            *("anthropic", "https://api.anthropic.com", "/v1/messages", model),
            variables=(ANTHROPIC_BASE_VARIABLE, ANTHROPIC_KEY_VARIABLE),
            header=lambda key: {
                "anthropic-version": _ANTHROPIC_VERSION,
                **({"x-api-key": key} if key else {}),
            },
        ),
        request_formats=(
            _anthropic_tool_body,
            lambda request: _anthropic_body(request.with_schema_in_text()),
        ),
        read_completion=_read_anthropic,
    )
    return ServedLanguageModel(protocol, model, timeouts=timeouts, breaker=breaker)


def _anthropic_body(request: CompletionRequest) -> Body:
    return {
        "model": request.model,
        "max_tokens": request.output_tokens,
        "system": request.system,
        "messages": [{"role": "user", "content": request.user}],
    }


def _anthropic_tool_body(request: CompletionRequest) -> Body:
    tool = {
        "name": request.task,
        "description": "Receives the answer.",
        "input_schema": request.outline_schema,
    }
    choice = {"type": "tool", "name": request.task, "disable_parallel_tool_use": True}
    return _anthropic_body(request) | {"tools": [tool], "tool_choice": choice}


def _read_anthropic(answer: Any) -> Completion:
    blocks, ended = answer["content"], answer.get("stop_reason")
    usage = answer.get("usage") or {}
    said = Completion(
        "",
        is_truncated=ended in _TRUNCATED_REASONS,
        is_refused=ended == "refusal",
        tokens_in=sum_usage(usage, *_INPUT_TOKEN_FIELDS),
        tokens_out=sum_usage(usage, "output_tokens"),
    )
    for block in blocks:
        if block["type"] == "tool_use":
            return said._replace(content=dict(block["input"]))
    # A model that answers in text may still have written the object.
    return said._replace(content="".join(b["text"] for b in blocks if b["type"] == "text"))
