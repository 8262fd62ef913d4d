"""Registry of embedders by name; each provider is one entry of a table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from bethink.errors import BadSetting

if TYPE_CHECKING:  # start-up time: whoever asks a worker looks here for names alone
    from bethink.ports import Embedder


T = TypeVar("T")

DEFAULT_EMBEDDER = "wordllama"
NONE = "none"


class Provider(NamedTuple, Generic[T]):
    """Module and class name of a model, imported on first use.

    Its module must import nothing heavy, and creating one must load nothing: that happens
    with the first text. ``argument_hint`` names the part after the colon of
    "provider:argument". ``slow_to_load`` says that a worker process should keep it loaded.
    ``env_prefixes`` are the prefixes of the environment variables it reads.
    """

    module: str
    name: str
    takes: str = ""
    slow_to_load: bool = False
    reads: tuple[str, ...] = ()

    def __call__(self, *argument: str) -> T:
        made: T = getattr(import_module(self.module), self.name)(*argument)
        return made


_TRANSFORMER: Provider[Embedder] = Provider(
    "bethink.models.embed.transformer", "TransformerEmbedder", "FOLDER", slow_to_load=True
)

# Those that need nothing but their name.
EMBEDDERS: dict[str, Provider[Embedder]] = {
    "wordllama": Provider("bethink.models.embed.static", "StaticEmbedder"),
    "hash": Provider("bethink.models.embed.hashing", "HashEmbedder"),
    "transformer": _TRANSFORMER,
}

_TIMEOUT_PREFIXES = ("BETHINK_QUERY_", "BETHINK_BATCH_")

# Those that must be told which model.
EMBEDDER_PROVIDERS: dict[str, Provider[Embedder]] = {
    "transformer": _TRANSFORMER,
    "sentence-transformers": Provider(
        "bethink.models.embed.sentence_transformers",
        "SentenceTransformersEmbedder",
        "NAME_OR_FOLDER",
        slow_to_load=True,
        reads=("HF_", "HUGGINGFACE_", "TRANSFORMERS_", "SENTENCE_TRANSFORMERS_", "TORCH_", "CUDA_"),
    ),
    "ollama": Provider(
        "bethink.models.embed.served", "open_ollama", "MODEL", reads=("OLLAMA_", *_TIMEOUT_PREFIXES)
    ),
    "openai": Provider(
        "bethink.models.embed.served", "open_openai", "MODEL", reads=("OPENAI_", *_TIMEOUT_PREFIXES)
    ),
}


def embedder_provider(name: str) -> Provider[Embedder] | None:
    """Return the provider of an embedder name or "provider:argument"; None if unknown."""
    return EMBEDDERS.get(name) or EMBEDDER_PROVIDERS.get(name.partition(":")[0])


def open_embedder(name: str | None = None) -> Embedder | None:
    """Create the embedder of a name or "provider:argument", not loaded yet.

    "none" returns None: search by words alone. Every embedder is created here and nowhere
    else.
    """
    wanted = DEFAULT_EMBEDDER if name is None else name
    if wanted == NONE:
        return None
    if wanted in EMBEDDERS:
        return EMBEDDERS[wanted]()
    provider, _, argument = wanted.partition(":")
    if provider in EMBEDDER_PROVIDERS and argument:
        return EMBEDDER_PROVIDERS[provider](argument)
    models = [f"{prefix}:{provider.takes}" for prefix, provider in EMBEDDER_PROVIDERS.items()]
    raise BadSetting(
        f"there is no embedder {wanted!r}",
        remedy=f"allowed: {', '.join([*EMBEDDERS, NONE, *models])}",
    )
