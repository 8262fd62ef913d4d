"""Answers by any server with OpenAI's chat protocol: ``llm = "openai:MODEL"``.

``OPENAI_BASE_URL`` says where, ``OPENAI_API_KEY`` opens the door.
"""

from __future__ import annotations

from typing import Any

from recollect.models.breaker import Breaker
from recollect.models.llm.dialect import Asked, Dialect, Said, counted
from recollect.models.llm.served import Patience, ServedModel
from recollect.models.openai import HOME_HOST, KEY_VARIABLE, base_url, key_header


def open_openai(
    model: str, *, patience: Patience | None = None, breaker: Breaker | None = None
) -> ServedModel:
    """The model, asked by OpenAI's protocol."""
    base = base_url()
    is_home = base.host == HOME_HOST
    dialect = Dialect(
        provider="openai",
        url=base._replace(path=f"{base.path}/chat/completions"),
        headers=lambda: key_header(base),
        forms=(
            lambda asked: _body(asked, is_home=is_home) | {"response_format": _by_schema(asked)},
            lambda asked: (
                _body(asked.spelled_out(), is_home=is_home)
                | {"response_format": {"type": "json_object"}}
            ),
            lambda asked: _body(asked.spelled_out(), is_home=is_home),
        ),
        read=_read,
        no_entry=f"look at {KEY_VARIABLE}",
    )
    return ServedModel(dialect, model, patience=patience, breaker=breaker)


def _body(asked: Asked, *, is_home: bool) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": asked.system},
        {"role": "user", "content": asked.user},
    ]
    # OpenAI's models that reason refuse the old name of the limit, and any temperature.
    settings: dict[str, Any] = (
        {"max_completion_tokens": asked.output_tokens}
        if is_home
        else {"max_tokens": asked.output_tokens, "temperature": 0}
    )
    return {"model": asked.model, "messages": messages, "stream": False, **settings}


def _by_schema(asked: Asked) -> dict[str, Any]:
    named = {"name": asked.task, "strict": True, "schema": asked.outline}
    return {"type": "json_schema", "json_schema": named}


def _read(answer: Any) -> Said:
    choice = answer["choices"][0]
    message, ended = choice["message"], choice.get("finish_reason")
    content = message.get("content")
    is_refused = ended == "content_filter" or bool(message.get("refusal"))
    if not isinstance(content, str) and not is_refused and ended != "length":
        raise ValueError("no text")
    usage = answer.get("usage") or {}
    return Said(
        content or "",
        is_cut=ended == "length",
        is_refused=is_refused,
        tokens_in=counted(usage, "prompt_tokens"),
        tokens_out=counted(usage, "completion_tokens"),
    )
