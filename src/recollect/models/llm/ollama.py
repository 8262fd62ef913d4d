"""Answers by a model that Ollama serves: ``llm = "ollama:MODEL"``.

``OLLAMA_HOST`` says where, as Ollama itself understands it.
"""

from __future__ import annotations

import os
from typing import Any

from recollect.models.breaker import Breaker
from recollect.models.llm.dialect import Asked, Dialect, Said, counted
from recollect.models.llm.served import Patience, ServedModel
from recollect.models.ollama import host_url

_LEAST_WINDOW = 4096


def open_ollama(
    model: str, *, patience: Patience | None = None, breaker: Breaker | None = None
) -> ServedModel:
    """The model, asked by Ollama's own protocol."""
    url = host_url(os.environ)
    dialect = Dialect(
        provider="ollama",
        url=url._replace(path=f"{url.path}/api/chat"),
        headers=dict,
        forms=(
            lambda asked: _body(asked) | {"format": asked.outline},
            lambda asked: _body(asked.spelled_out()) | {"format": "json"},
            lambda asked: _body(asked.spelled_out()),
        ),
        read=_read,
        unknown_model=f"ollama pull {model}",
    )
    return ServedModel(dialect, model, patience=patience, breaker=breaker)


def _body(asked: Asked) -> dict[str, Any]:
    # Unless told, Ollama drops the beginning of what does not fit a small window, and
    # says nothing. Every other size loads the model anew, so there are few sizes.
    needed = asked.input_tokens + asked.output_tokens
    window = max(_LEAST_WINDOW, 1 << (needed - 1).bit_length())
    options = {"temperature": 0, "num_predict": asked.output_tokens, "num_ctx": window}
    messages = [
        {"role": "system", "content": asked.system},
        {"role": "user", "content": asked.user},
    ]
    return {"model": asked.model, "messages": messages, "stream": False, "options": options}


def _read(answer: Any) -> Said:
    content = answer["message"]["content"]
    if not isinstance(content, str):
        raise TypeError("no text")
    return Said(
        content,
        is_cut=answer.get("done_reason") == "length",
        tokens_in=counted(answer, "prompt_eval_count"),
        tokens_out=counted(answer, "eval_count"),
    )
