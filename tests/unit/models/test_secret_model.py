"""The model of secrets finds what no rule names, and leaves ordinary texts alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from bethink import Memory
from bethink.errors import ModelError
from bethink.ingest.redaction import redact
from bethink.models.secret_model import SecretModel, secret_model


@each_row(
    "text, secret",
    [
        ("Anmeldung am NAS mit timo und Fichtennadel_5", "Fichtennadel_5"),
        ("Per entrare dal cancello digita 7302", "7302"),
        ("Our shared Figma seat, the mail is design@, after that Kerning4ever.", "Kerning4ever"),
        ("Backup tapes are on floor two, turn the dial to 38-12-71-05.", "38-12-71-05"),
    ],
)
def test_a_secret_without_a_label_is_found(text: str, secret: str) -> None:
    """What only the situation tells to be a secret is no longer in the text."""
    cleaned = redact(text, find=secret_model.find)
    assert secret not in cleaned.text
    assert "secret" in cleaned.kinds


@each_row(
    "text",
    [
        "Releases go out on Tuesdays at ten",
        "We chose PostgreSQL 16 for billing because of row-level security",
        "fixed in 3f58253e, see ticket OPS-20418",
        "the password is wrong, reset it in the portal",
        "Bus 114 leaves at 0730 from gate 12",
        "The port of the billing API is 8080",
        "We no longer use MongoDB, we use PostgreSQL",
        "Login works again since v2.3.1 on node db7",
        "The room number of the annex is 4471",
        "The door code of the annex is in the vault",
        "Der Fehlercode ist 4711, die Durchwahl 309",
        "def add(a: int, b: int) -> int: return a + b",
        "then 429",
        "memory 0 about " + "tea " * 30,
        'Lost keyboard key "F7" on loaner laptop 6',
        "The architecture notes live at https://wiki.corp.example/display/ENG/Ledger+v3",
        "0-1",
        "memory 0 about tea",
        "fact 17",
        "Ports:\n- web: 8080\n- worker: 9090",
        "Ключи доступа меняются каждые девяносто дней",
        "東京都千代田区丸の内1-9-1に届けてください",
        "住所は横浜市西区みなとみらい2-2-1です",
    ],
)
def test_an_ordinary_text_stays(text: str) -> None:
    """A text without a secret is stored as it was written."""
    assert redact(text, find=secret_model.find).text == text


@given(st.text(max_size=120))
def test_spans_are_in_order_and_inside(text: str) -> None:
    """What is found lies in the text, in order, without overlap, and is not empty."""
    last = 0
    for begin, end in secret_model.find(text):
        assert last <= begin < end <= len(text)
        last = end


def test_a_memory_is_stored_without_what_the_model_finds(tmp_path: Path) -> None:
    """The text of a memory is redacted before it is stored; the answer names the kind."""
    with Memory.open(path=tmp_path / "a.db", embedder="none") as memory:
        stored = memory.remember("Anmeldung am NAS mit timo und Fichtennadel_5")
        assert stored.redacted == ("secret",)
        item = memory.get(stored.id)
        assert item is not None
        assert "Fichtennadel_5" not in item.text


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    """A file that holds no weights is refused with its name."""
    path = tmp_path / "weights.npz"
    path.write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(ModelError, match="damaged"):
        SecretModel(path).find("a word")
