"""Protocols of language model servers: Ollama, OpenAI and Anthropic.

``llm = "ollama:MODEL"``: ``OLLAMA_HOST`` is the address. ``llm = "openai:MODEL"``: any
server with OpenAI's chat protocol, with ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``. ``llm =
"anthropic:MODEL"``: the Messages protocol, with ``ANTHROPIC_API_KEY`` and
``ANTHROPIC_BASE_URL``; the answer is requested as the input of a tool with the schema.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from bethink.models.http import (
    OPENAI_HOST,
    CircuitBreaker,
    keyed_server,
    ollama_server,
    openai_server,
)
from bethink.models.llm.client import (
    ChatProtocol,
    Completion,
    CompletionRequest,
    LlmTimeouts,
    ServedLanguageModel,
    sum_usage,
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
