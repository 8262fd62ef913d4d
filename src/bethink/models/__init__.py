"""Registry of embedders, and how a model is opened by "name" or "name:argument"."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from bethink.core.named_tuple import NamedTuple
from bethink.core.registry import Registry, import_object
from bethink.errors import BadSetting

if TYPE_CHECKING:  # start-up time: a client of the worker reads only names here
    from bethink.ports import Embedder


T = TypeVar("T")

DEFAULT_EMBEDDER = "encoder"
NONE = "none"


class Provider(NamedTuple, Generic[T]):
    """How to create a model: its class or factory, imported on first use.

    ``make`` is that or its "package.module:Attribute". Its module must import nothing heavy,
    and creating a model must load nothing: that happens with the first text.
    ``argument_hint`` names the part after the colon of "name:argument", ``bare`` says that the
    name alone is enough. ``slow_to_load`` says that a worker process should keep it loaded.
    ``env_prefixes`` are the prefixes of the environment variables it reads.
    """

    make: str | Callable[..., T]
    argument_hint: str = ""
    bare: bool = True
    slow_to_load: bool = False
    env_prefixes: tuple[str, ...] = ()

    def __call__(self, *argument: str) -> T:
        make = import_object(self.make) if isinstance(self.make, str) else self.make
        return cast("T", make(*argument))

    def accepts(self, name: str) -> bool:
        """Whether it can be opened by this "name" or "name:argument"."""
        _, colon, argument = name.partition(":")
        return bool(argument and self.argument_hint) if colon else self.bare


_CERTIFICATES_PREFIX = "SSL_CERT_"  # whom a connection trusts


def served(make: str, argument_hint: str, *env_prefixes: str) -> Provider[Any]:
    """Return the provider of a model behind a server, which its argument names."""
    read = (*env_prefixes, _CERTIFICATES_PREFIX)
    return Provider(make, argument_hint, bare=False, env_prefixes=read)


def plugin_provider(offered: object) -> Provider[Any]:
    """Return the provider of what a plug-in offers: a `Provider`, a class or a factory."""
    if isinstance(offered, Provider):
        return offered
    if not callable(offered):
        raise TypeError(f"{offered!r} is neither a class nor a function")
    from inspect import Parameter, signature  # start-up time: only plug-ins need it

    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [
        parameter
        for parameter in signature(offered).parameters.values()
        if parameter.kind in positional
    ]
    required = any(parameter.default is Parameter.empty for parameter in parameters)
    return Provider(offered, parameters[0].name.upper() if parameters else "", bare=not required)


def find_provider(models: Registry[Provider[T]], name: str) -> Provider[T] | None:
    """Return the provider of a "name" or "name:argument"; None where there is none."""
    provider = models.get(name.partition(":")[0]) if name != NONE else None
    return provider if provider is not None and provider.accepts(name) else None


def open_model(models: Registry[Provider[T]], name: str) -> T:
    """Create the model of a "name" or "name:argument", not loaded yet."""
    provider = find_provider(models, name)
    if provider is not None:
        _, _, argument = name.partition(":")
        return provider(argument) if argument else provider()
    known = {one: models[one] for one in models.builtin}
    bare = [one for one, provider in known.items() if provider.bare]
    taking = [
        f"{one}:{provider.argument_hint}"
        for one, provider in known.items()
        if provider.argument_hint
    ]
    allowed = ", ".join([*bare, NONE, *taking, *models.installed])
    raise BadSetting(f"there is no {models.kind} {name!r}", remedy=f"allowed: {allowed}")


_TIMEOUT_PREFIXES = ("BETHINK_QUERY_", "BETHINK_BATCH_")
# What sentence-transformers and the libraries below it read.
LIBRARY_PREFIXES = (
    "HF_", "HUGGINGFACE_", "TRANSFORMERS_", "SENTENCE_TRANSFORMERS_", "TORCH_", "CUDA_",
)  # fmt: skip
_SERVED = "bethink.models.embed.served"

EMBEDDERS: Registry[Provider[Embedder]] = Registry(
    "embedder",
    {
        "encoder": Provider("bethink.models.embed.encoder:EncoderEmbedder"),
        "hash": Provider("bethink.models.embed.hashing:HashEmbedder"),
        "sentence-transformers": Provider(
            "bethink.models.embed.sentence_transformers:SentenceTransformersEmbedder",
            "NAME_OR_FOLDER",
            bare=False,
            slow_to_load=True,
            env_prefixes=LIBRARY_PREFIXES,
        ),
        "ollama": served(f"{_SERVED}:open_ollama", "MODEL", "OLLAMA_", *_TIMEOUT_PREFIXES),
        "openai": served(f"{_SERVED}:open_openai", "MODEL", "OPENAI_", *_TIMEOUT_PREFIXES),
    },
    group="bethink.embedders",
    adapt=plugin_provider,
)


def embedder_provider(name: str) -> Provider[Embedder] | None:
    """Return the provider of an embedder; None where there is none."""
    return find_provider(EMBEDDERS, name)


def open_embedder(name: str | None = None) -> Embedder | None:
    """Create the embedder of a name or "name:argument", not loaded yet.

    "none" returns None: search by words alone. Every embedder is created here and nowhere
    else, and a name of an earlier version means what the setting makes of it.
    """
    from bethink.config.settings import SETTINGS_BY_NAME  # start-up time of the worker's clients

    chosen = str(SETTINGS_BY_NAME["embedder"].current(DEFAULT_EMBEDDER if name is None else name))
    return None if chosen == NONE else open_model(EMBEDDERS, chosen)
