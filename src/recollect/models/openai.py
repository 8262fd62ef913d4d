"""Embeds by any server with OpenAI's protocol: ``embedder = "openai:MODEL"``.

``OPENAI_BASE_URL`` says where, ``OPENAI_API_KEY`` opens the door; a server of one's
own may need no key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from recollect.errors import ModelError
from recollect.models.breaker import Breaker
from recollect.models.exchange import read_url
from recollect.models.served import Patience, ServedEmbedder, Service

BASE_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"
_HOME_HOST = "api.openai.com"
_HOME = f"https://{_HOME_HOST}/v1"


def open_openai(
    model: str, *, patience: Patience | None = None, breaker: Breaker | None = None
) -> ServedEmbedder:
    """The model, asked for vectors by OpenAI's protocol."""
    base = read_url(os.environ.get(BASE_VARIABLE, "").strip() or _HOME, variable=BASE_VARIABLE)
    service = Service(
        provider="openai",
        url=base._replace(path=f"{base.path}/embeddings"),
        headers=lambda: _headers(is_needed=base.host == _HOME_HOST),
        ask=lambda name, texts: {"model": name, "input": list(texts), "encoding_format": "float"},
        read=_read,
        no_entry=f"look at {KEY_VARIABLE}",
    )
    return ServedEmbedder(service, model, patience=patience, breaker=breaker)


def _headers(*, is_needed: bool) -> Mapping[str, str]:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if is_needed and not key:
        # Before any text leaves this machine.
        raise ModelError(f"{KEY_VARIABLE} is not set", remedy="set it, or " + BASE_VARIABLE)
    if not (key.isascii() and key.isprintable()):
        # Not shown, and not handed on to a library whose error would show it.
        raise ModelError(f"{KEY_VARIABLE} holds characters that no key has")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _read(answer: Any) -> list[Any]:
    rows = answer["data"]
    if sorted(row["index"] for row in rows) != list(range(len(rows))):
        raise ValueError("the vectors are not numbered")
    return [row["embedding"] for row in sorted(rows, key=lambda row: int(row["index"]))]
