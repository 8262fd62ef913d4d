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
from recollect.models.exchange import Url, read_url
from recollect.models.patience import bearer
from recollect.models.served import Patience, ServedEmbedder, Service

BASE_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"
HOME_HOST = "api.openai.com"


def open_openai(
    model: str, *, patience: Patience | None = None, breaker: Breaker | None = None
) -> ServedEmbedder:
    """The model, asked for vectors by OpenAI's protocol."""
    base = base_url()
    service = Service(
        provider="openai",
        url=base._replace(path=f"{base.path}/embeddings"),
        headers=lambda: key_header(base),
        ask=lambda name, texts: {"model": name, "input": list(texts), "encoding_format": "float"},
        read=_read,
        no_entry=f"look at {KEY_VARIABLE}",
    )
    return ServedEmbedder(service, model, patience=patience, breaker=breaker)


def base_url() -> Url:
    """Where the server is: OpenAI itself unless the environment says otherwise."""
    given = os.environ.get(BASE_VARIABLE, "").strip()
    return read_url(given or f"https://{HOME_HOST}/v1", variable=BASE_VARIABLE)


def key_header(base: Url) -> Mapping[str, str]:
    """The key as the server wants it; one of one's own may do without."""
    headers = bearer(os.environ, KEY_VARIABLE)
    if base.host == HOME_HOST and not headers:
        # Before any text leaves this machine.
        raise ModelError(f"{KEY_VARIABLE} is not set", remedy="set it, or " + BASE_VARIABLE)
    return headers


def _read(answer: Any) -> list[Any]:
    rows = answer["data"]
    if sorted(row["index"] for row in rows) != list(range(len(rows))):
        raise ValueError("the vectors are not numbered")
    return [row["embedding"] for row in sorted(rows, key=lambda row: int(row["index"]))]
