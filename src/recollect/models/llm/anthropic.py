"""Answers by Anthropic's Messages protocol: ``llm = "anthropic:MODEL"``.

``ANTHROPIC_API_KEY`` opens the door; ``ANTHROPIC_BASE_URL`` names another server of the
same protocol. The answer is asked for as the input of a tool whose schema it must keep.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from recollect.errors import ModelError
from recollect.models.breaker import Breaker
from recollect.models.exchange import Url, read_url
from recollect.models.llm.dialect import Asked, Dialect, Said, counted
from recollect.models.llm.served import Patience, ServedModel

BASE_VARIABLE = "ANTHROPIC_BASE_URL"
KEY_VARIABLE = "ANTHROPIC_API_KEY"
_HOME_HOST = "api.anthropic.com"
_VERSION = "2023-06-01"
_READ_IN = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CUT = ("max_tokens", "model_context_window_exceeded")


def open_anthropic(
    model: str, *, patience: Patience | None = None, breaker: Breaker | None = None
) -> ServedModel:
    """The model, asked by Anthropic's protocol."""
    given = os.environ.get(BASE_VARIABLE, "").strip()
    base = read_url(given or f"https://{_HOME_HOST}", variable=BASE_VARIABLE)
    dialect = Dialect(
        provider="anthropic",
        url=base._replace(path=f"{base.path}/v1/messages"),
        headers=lambda: _headers(base),
        forms=(_by_tool, lambda asked: _body(asked.spelled_out())),
        read=_read,
        no_entry=f"look at {KEY_VARIABLE}",
    )
    return ServedModel(dialect, model, patience=patience, breaker=breaker)


def _headers(base: Url) -> Mapping[str, str]:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if base.host == _HOME_HOST and not key:
        # Before any text leaves this machine.
        raise ModelError(f"{KEY_VARIABLE} is not set", remedy="set it, or " + BASE_VARIABLE)
    if not (key.isascii() and key.isprintable()):
        # Not shown, and not handed on to a library whose error would show it.
        raise ModelError(f"{KEY_VARIABLE} holds characters that no key has")
    return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}


def _body(asked: Asked) -> dict[str, Any]:
    return {
        "model": asked.model,
        "max_tokens": asked.output_tokens,
        "system": asked.system,
        "messages": [{"role": "user", "content": asked.user}],
    }


def _by_tool(asked: Asked) -> dict[str, Any]:
    tool = {
        "name": asked.task,
        "description": "Takes the answer.",
        "input_schema": asked.outline,
    }
    choice = {"type": "tool", "name": asked.task, "disable_parallel_tool_use": True}
    return _body(asked) | {"tools": [tool], "tool_choice": choice}


def _read(answer: Any) -> Said:
    blocks, ended = answer["content"], answer.get("stop_reason")
    usage = answer.get("usage") or {}
    said = Said(
        "",
        is_cut=ended in _CUT,
        is_refused=ended == "refusal",
        tokens_in=counted(usage, *_READ_IN),
        tokens_out=counted(usage, "output_tokens"),
    )
    for block in blocks:
        if block["type"] == "tool_use":
            return said._replace(content=dict(block["input"]))
    # A model that answers in words instead may still have written the object.
    return said._replace(content="".join(b["text"] for b in blocks if b["type"] == "text"))
