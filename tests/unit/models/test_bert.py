"""Which model folders can be run, and which are refused with a way out."""

from __future__ import annotations

import json

import pytest

from bethink.errors import ModelError
from bethink.models.onnx_network import read_encoder_sizes
from rows import each_row
from tiny_bert import HEADS, LAYERS, POSITIONS, WIDTH, make_tiny_bert


@pytest.fixture
def folder(tmp_path):
    return make_tiny_bert(tmp_path / "tiny")


def change(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_sizes_are_read(folder):
    """A folder without a sentence encoder's own files is one all the same."""
    assert read_encoder_sizes(folder) == (LAYERS, HEADS, WIDTH, 1e-12, POSITIONS)


def test_the_window_is_what_it_was_trained_with(folder):
    """It may be shorter than the places there are, never longer."""
    for trained, window in ((20, 20), (4096, POSITIONS)):
        text = json.dumps({"max_seq_length": trained})
        (folder / "sentence_bert_config.json").write_text(text)

        assert read_encoder_sizes(folder).window == window


@pytest.mark.parametrize(
    "values",
    [
        {"model_type": "roberta"},
        {"hidden_act": "silu"},
        {"position_embedding_type": "relative_key"},
    ],
)
def test_another_kind_of_network_is_refused(folder, values):
    """The remedy names the provider that can run it."""
    change(folder, **values)

    with pytest.raises(ModelError, match="not contain a BERT encoder") as caught:
        read_encoder_sizes(folder)

    assert "sentence-transformers" in caught.value.remedy


@each_row(
    ("pooling", "right"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, True),
        ({"pooling_mode": "mean", "include_prompt": True}, True),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, False),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}, False),
        ({"pooling_mode": "cls"}, False),
    ],
)
def test_only_the_mean_is_pooled(folder, pooling, right):
    """In the old and the new way of writing it."""
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))

    if right:
        assert read_encoder_sizes(folder).width == WIDTH
    else:
        with pytest.raises(ModelError, match="does not use mean pooling"):
            read_encoder_sizes(folder)


def test_further_steps_are_refused(folder):
    """A layer after the pooling would be left out unnoticed."""
    steps = ["Transformer", "Pooling", "Dense", "Normalize"]
    modules = [
        {"idx": at, "type": f"sentence_transformers.models.{s}"} for at, s in enumerate(steps)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))

    with pytest.raises(ModelError, match="has unsupported modules: Dense"):
        read_encoder_sizes(folder)

    (folder / "modules.json").write_text(json.dumps(modules[:2]))
    assert read_encoder_sizes(folder).width == WIDTH


@each_row(
    ("values", "said"),
    [
        ({"num_hidden_layers": None}, "lacks"),
        ({"hidden_size": "wide"}, "lacks"),
        ({"num_attention_heads": 5}, "inconsistent sizes"),
        ({"num_attention_heads": 0}, "inconsistent sizes"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(folder, values, said):
    """Before anything is computed with them."""
    change(folder, **values)

    with pytest.raises(ModelError, match=said):
        read_encoder_sizes(folder)


@each_row("content", ["", "[]", "{", '"text"', "\x00"])
def test_settings_that_cannot_be_read_are_refused(folder, content):
    """The error names the file."""
    (folder / "config.json").write_text(content)

    with pytest.raises(ModelError, match=r"config\.json"):
        read_encoder_sizes(folder)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    """By the name of the file that was looked for."""
    with pytest.raises(ModelError, match=r"config\.json cannot be read"):
        read_encoder_sizes(tmp_path / "gone")
