"""The embedders by name. A provider is one file; this table is how it is found."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from recollect.errors import BadSetting

if TYPE_CHECKING:  # start-up time: whoever asks a worker looks here for names alone
    from recollect.ports import Embedder

T = TypeVar("T")

DEFAULT = "wordllama"
NONE = "none"


class Provider(NamedTuple, Generic[T]):
    """Where a model's class is. Its module must import nothing heavy, and making
    one must load nothing: that happens when the first text comes.

    ``takes`` names what stands behind the colon of "provider:argument". A ``heavy`` one
    takes so long to load that it is worth a process that keeps it. ``reads`` are the first
    letters of environment variables that it goes by.
    """

    module: str
    name: str
    takes: str = ""
    heavy: bool = False
    reads: tuple[str, ...] = ()

    def __call__(self, *argument: str) -> T:
        made: T = getattr(import_module(self.module), self.name)(*argument)
        return made


_TRANSFORMER: Provider[Embedder] = Provider(
    "recollect.models.transformer", "TransformerEmbedder", "FOLDER", heavy=True
)

# Those that need nothing but their name.
EMBEDDERS: dict[str, Provider[Embedder]] = {
    "wordllama": Provider("recollect.models.static", "StaticEmbedder"),
    "hash": Provider("recollect.models.hashing", "HashEmbedder"),
    "transformer": _TRANSFORMER,
}

_PATIENCE = ("RECOLLECT_QUERY_", "RECOLLECT_BATCH_")

# Those that must be told which model.
PROVIDERS: dict[str, Provider[Embedder]] = {
    "transformer": _TRANSFORMER,
    "sentence-transformers": Provider(
        "recollect.models.sentence_transformers",
        "SentenceTransformersEmbedder",
        "NAME_OR_FOLDER",
        heavy=True,
        reads=("HF_", "HUGGINGFACE_", "TRANSFORMERS_", "SENTENCE_TRANSFORMERS_", "TORCH_", "CUDA_"),
    ),
    "ollama": Provider(
        "recollect.models.ollama", "open_ollama", "MODEL", reads=("OLLAMA_", *_PATIENCE)
    ),
    "openai": Provider(
        "recollect.models.openai", "open_openai", "MODEL", reads=("OPENAI_", *_PATIENCE)
    ),
}


def provider_of(name: str) -> Provider[Embedder] | None:
    """Who provides the embedder of that name or "provider:argument"; None where nobody does."""
    return EMBEDDERS.get(name) or PROVIDERS.get(name.partition(":")[0])


def open_embedder(name: str | None = None) -> Embedder | None:
    """The embedder of that name or "provider:argument", not loaded yet; "none" means
    words alone.

    Every embedder is made here and nowhere else.
    """
    wanted = DEFAULT if name is None else name
    if wanted == NONE:
        return None
    if wanted in EMBEDDERS:
        return EMBEDDERS[wanted]()
    provider, _, argument = wanted.partition(":")
    if provider in PROVIDERS and argument:
        return PROVIDERS[provider](argument)
    models = [f"{prefix}:{provider.takes}" for prefix, provider in PROVIDERS.items()]
    raise BadSetting(
        f"there is no embedder {wanted!r}",
        remedy=f"allowed: {', '.join([*EMBEDDERS, NONE, *models])}",
    )
