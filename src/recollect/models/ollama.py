"""Embeds by a model that Ollama serves: ``embedder = "ollama:MODEL"``.

``OLLAMA_HOST`` says where, as Ollama itself understands it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from recollect.models.breaker import Breaker
from recollect.models.exchange import Url, read_url
from recollect.models.served import Patience, ServedEmbedder, Service

VARIABLE = "OLLAMA_HOST"
_PORT = 11_434


def open_ollama(
    model: str, *, patience: Patience | None = None, breaker: Breaker | None = None
) -> ServedEmbedder:
    """The model, asked for vectors by Ollama's own protocol."""
    url = host_url(os.environ)
    service = Service(
        provider="ollama",
        url=url._replace(path=f"{url.path}/api/embed"),
        headers=dict,
        ask=lambda name, texts: {"model": name, "input": list(texts)},
        read=_read,
        unknown_model=f"ollama pull {model}",
    )
    return ServedEmbedder(service, model, patience=patience, breaker=breaker)


def _read(answer: Any) -> list[Any]:
    return list(answer["embeddings"])


def host_url(env: Mapping[str, str]) -> Url:
    """Where Ollama is: on this machine unless the environment says otherwise."""
    given = env.get(VARIABLE, "").strip() or "127.0.0.1"
    if "://" in given:
        url = read_url(given, variable=VARIABLE)
    else:
        # The variable tells the server where to listen, too, and there needs no scheme.
        url = read_url(f"http://{given}", variable=VARIABLE)
        has_port = given.partition("/")[0].rpartition("]")[2].rpartition(":")[1] == ":"
        url = url if has_port else url._replace(port=_PORT)
    # Listening everywhere is being found here.
    return url._replace(host={"0.0.0.0": "127.0.0.1", "::": "::1"}.get(url.host, url.host))  # noqa: S104
