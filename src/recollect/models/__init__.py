"""The embedders by name. A provider is one file; this table is how it is found."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from recollect.errors import BadSetting
from recollect.ports import Embedder

DEFAULT = "wordllama"
NONE = "none"


class Provider(NamedTuple):
    """Where an embedder's class is. Its module must import nothing heavy, and making
    one must load nothing: that happens when the first text comes."""

    module: str
    name: str

    def __call__(self) -> Embedder:
        embedder: Embedder = getattr(import_module(self.module), self.name)()
        return embedder


EMBEDDERS: dict[str, Provider] = {
    "wordllama": Provider("recollect.models.static", "StaticEmbedder"),
    "hash": Provider("recollect.models.hashing", "HashEmbedder"),
    "transformer": Provider("recollect.models.transformer", "TransformerEmbedder"),
}


def open_embedder(name: str | None = None) -> Embedder | None:
    """The embedder of that name, not loaded yet; "none" means words alone.

    Every embedder is made here and nowhere else: what must surround them all, such
    as a deadline, belongs around this call.
    """
    wanted = DEFAULT if name is None else name
    if wanted == NONE:
        return None
    if wanted not in EMBEDDERS:
        raise BadSetting(
            f"there is no embedder {wanted!r}", remedy=f"allowed: {', '.join([*EMBEDDERS, NONE])}"
        )
    return EMBEDDERS[wanted]()
