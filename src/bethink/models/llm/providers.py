"""Protocols of language model servers: Ollama, OpenAI and Anthropic.

``llm = "ollama:MODEL"``: ``OLLAMA_HOST`` is the address. ``llm = "openai:MODEL"``: any
server with OpenAI's chat protocol, with ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``. ``llm =
"anthropic:MODEL"``: the Messages protocol, with ``ANTHROPIC_API_KEY`` and
``ANTHROPIC_BASE_URL``; the answer is requested as the input of a tool with the schema.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from bethink.errors import ModelError
from bethink.models.embed.served import (
    OPENAI_HOST,
    OPENAI_KEY_VARIABLE,
    ollama_url,
    openai_base_url,
    openai_headers,
)
from bethink.models.http import CircuitBreaker, Url, parse_base_url
from bethink.models.llm.client import (
    ChatProtocol,
    Completion,
    CompletionRequest,
    LlmTimeouts,
    ServedLanguageModel,
    sum_usage,
)

_MIN_CONTEXT_WINDOW = 4096


def open_ollama(
    model: str, *, timeouts: LlmTimeouts | None = None, breaker: CircuitBreaker | None = None
) -> ServedLanguageModel:
    """Create the language model of Ollama's chat protocol."""
    url = ollama_url(os.environ)
    protocol = ChatProtocol(
        provider="ollama",
        url=url._replace(path=f"{url.path}/api/chat"),
        headers=dict,
        request_formats=(
            lambda request: _ollama_body(request) | {"format": request.outline_schema},
            lambda request: _ollama_body(request.with_schema_in_text()) | {"format": "json"},
            lambda request: _ollama_body(request.with_schema_in_text()),
        ),
        read_completion=_read_ollama,
        missing_model_remedy=f"ollama pull {model}",
    )
    return ServedLanguageModel(protocol, model, timeouts=timeouts, breaker=breaker)


def _ollama_body(request: CompletionRequest) -> dict[str, Any]:
    # By default Ollama silently drops the beginning of a prompt that exceeds a small window.
    # Each new size reloads the model, so there are few sizes.
    needed = request.input_tokens + request.output_tokens
    window = max(_MIN_CONTEXT_WINDOW, 1 << (needed - 1).bit_length())
    options = {"temperature": 0, "num_predict": request.output_tokens, "num_ctx": window}
    messages = [
        {"role": "system", "content": request.system},
        {"role": "user", "content": request.user},
    ]
    return {"model": request.model, "messages": messages, "stream": False, "options": options}


def _read_ollama(answer: Any) -> Completion:
    content = answer["message"]["content"]
    if not isinstance(content, str):
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
    base = openai_base_url()
    is_home = base.host == OPENAI_HOST
    protocol = ChatProtocol(
        provider="openai",
        url=base._replace(path=f"{base.path}/chat/completions"),
        headers=lambda: openai_headers(base),
        request_formats=(
            lambda request: (
                _openai_body(request, is_openai_host=is_home)
                | {"response_format": _openai_response_format(request)}
            ),
            lambda request: (
                _openai_body(request.with_schema_in_text(), is_openai_host=is_home)
                | {"response_format": {"type": "json_object"}}
            ),
            lambda request: _openai_body(request.with_schema_in_text(), is_openai_host=is_home),
        ),
        read_completion=_read_openai,
        auth_remedy=f"check {OPENAI_KEY_VARIABLE}",
    )
    return ServedLanguageModel(protocol, model, timeouts=timeouts, breaker=breaker)


def _openai_body(request: CompletionRequest, *, is_openai_host: bool) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": request.system},
        {"role": "user", "content": request.user},
    ]
    # OpenAI's reasoning models refuse the old name of the limit, and any temperature.
    settings: dict[str, Any] = (
        {"max_completion_tokens": request.output_tokens}
        if is_openai_host
        else {"max_tokens": request.output_tokens, "temperature": 0}
    )
    return {"model": request.model, "messages": messages, "stream": False, **settings}


def _openai_response_format(request: CompletionRequest) -> dict[str, Any]:
    named = {"name": request.task, "strict": True, "schema": request.outline_schema}
    return {"type": "json_schema", "json_schema": named}


def _read_openai(answer: Any) -> Completion:
    choice = answer["choices"][0]
    message, ended = choice["message"], choice.get("finish_reason")
    content = message.get("content")
    is_refused = ended == "content_filter" or bool(message.get("refusal"))
    if not isinstance(content, str) and not is_refused and ended != "length":
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
_ANTHROPIC_HOST = "api.anthropic.com"
_ANTHROPIC_VERSION = "2023-06-01"
_INPUT_TOKEN_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_TRUNCATED_REASONS = ("max_tokens", "model_context_window_exceeded")


def open_anthropic(
    model: str, *, timeouts: LlmTimeouts | None = None, breaker: CircuitBreaker | None = None
) -> ServedLanguageModel:
    """Create the language model of Anthropic's Messages protocol."""
    given = os.environ.get(ANTHROPIC_BASE_VARIABLE, "").strip()
    base = parse_base_url(given or f"https://{_ANTHROPIC_HOST}", variable=ANTHROPIC_BASE_VARIABLE)
    protocol = ChatProtocol(
        provider="anthropic",
        url=base._replace(path=f"{base.path}/v1/messages"),
        headers=lambda: _anthropic_headers(base),
        request_formats=(
            _anthropic_tool_body,
            lambda request: _anthropic_body(request.with_schema_in_text()),
        ),
        read_completion=_read_anthropic,
        auth_remedy=f"check {ANTHROPIC_KEY_VARIABLE}",
    )
    return ServedLanguageModel(protocol, model, timeouts=timeouts, breaker=breaker)


def _anthropic_headers(base: Url) -> Mapping[str, str]:
    key = os.environ.get(ANTHROPIC_KEY_VARIABLE, "").strip()
    if base.host == _ANTHROPIC_HOST and not key:
        # Before any text leaves this machine.
        raise ModelError(
            f"{ANTHROPIC_KEY_VARIABLE} is not set", remedy="set it, or " + ANTHROPIC_BASE_VARIABLE
        )
    if not (key.isascii() and key.isprintable()):
        # Not shown, and not passed to a library whose error would show it.
        raise ModelError(
            f"{ANTHROPIC_KEY_VARIABLE} contains characters that are not valid in a key"
        )
    return {"anthropic-version": _ANTHROPIC_VERSION, **({"x-api-key": key} if key else {})}


def _anthropic_body(request: CompletionRequest) -> dict[str, Any]:
    return {
        "model": request.model,
        "max_tokens": request.output_tokens,
        "system": request.system,
        "messages": [{"role": "user", "content": request.user}],
    }


def _anthropic_tool_body(request: CompletionRequest) -> dict[str, Any]:
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
