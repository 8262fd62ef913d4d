"""Settings as their caller resolved them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bethink.config.settings import Settings, load_settings
from bethink.config.spaces import resolve_space
from bethink.errors import BadSetting
from bethink.worker.client import (
    resolve_reranker_folder,
    settings_from_json,
    settings_to_json,
)
from rows import each_row


@pytest.fixture
def told(tmp_path, monkeypatch):
    """What a caller in a project, with an environment of its own, would send."""
    (tmp_path / "shop" / ".bethink").mkdir(parents=True)
    (tmp_path / "shop" / ".bethink" / "config.toml").write_text('profile = "remind"\nk = 4\n')
    env = {
        "HOME": str(tmp_path),
        "BETHINK_CONFIG_DIR": str(tmp_path / "config"),
        "BETHINK_DATA_DIR": str(tmp_path / "data"),
        "REMIND_MIN_ACTIVATION": "0.3",
    }
    return load_settings(tmp_path / "shop", env, {"max_tokens": 500})


def there_and_back(settings: Settings) -> Settings:
    return settings_from_json(json.loads(json.dumps(settings_to_json(settings))))


def test_settings_mean_the_same_to_a_worker(told, tmp_path):
    """The same space, the same numbers, from the same places; nothing left to find out."""
    back = there_and_back(told)

    assert resolve_space(None, back)[:2] == resolve_space(None, told)[:2]
    assert back.explicit("k") == 4
    assert back.explicit("max_tokens") == 500
    assert back.explicit("track") is None
    assert back.origins == told.origins
    assert back.profile_folders() == told.profile_folders()
    assert back.changes("remind") == told.changes("remind") != ()


def test_what_was_found_by_itself_is_named(tmp_path, monkeypatch):
    """The data folder of the caller's environment, not of the worker's."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "theirs"))
    sent = settings_to_json(Settings())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "workers"))

    assert settings_from_json(sent).data_dir == tmp_path / "theirs" / "bethink"
    assert settings_from_json(sent).space == "personal"


def test_a_models_folder_is_where_the_caller_sees_it(tmp_path, monkeypatch):
    """A relative folder means nothing in another process; a name stays a name."""
    (tmp_path / "bert").mkdir()
    monkeypatch.chdir(tmp_path)

    sent = settings_to_json(
        Settings(embedder="sentence-transformers:bert", reranker="cross-encoder:bert")
    )

    assert sent["values"]["embedder"] == f"sentence-transformers:{tmp_path / 'bert'}"
    assert sent["values"]["reranker"] == f"cross-encoder:{tmp_path / 'bert'}"
    assert resolve_reranker_folder("cross-encoder:gone") == "cross-encoder:gone"
    assert resolve_reranker_folder("http://localhost/rerank") == "http://localhost/rerank"
    named = settings_to_json(Settings(embedder="sentence-transformers:some/model"))
    assert named["values"]["embedder"] == "sentence-transformers:some/model"


@each_row(
    "change",
    [
        lambda sent: sent.pop("values"),
        lambda sent: sent["values"].update(nonsense=1),
        lambda sent: sent["values"].update(k=10**9),
        lambda sent: sent["values"].update(k=True),
        lambda sent: sent["values"].update(space="../../etc"),
        lambda sent: sent["values"].update(embedder="anything"),
        lambda sent: sent.update(project="relative/path"),
        lambda sent: sent.update(config=7),
        lambda sent: sent["theirs"].update(home="a\x00b"),
        lambda sent: sent["theirs"].pop("home"),
        lambda sent: sent["origins"].update(k="argument"),
        lambda sent: sent["origins"].update(data_dir=["project file", "x"]),
    ],
)
def test_settings_are_checked_as_strictly_as_a_file(told, change):
    """Anything amiss is refused; a project may no more than it could before."""
    sent = json.loads(json.dumps(settings_to_json(told)))
    change(sent)

    with pytest.raises(BadSetting):
        settings_from_json(sent)


@each_row("garbage", [None, 7, "x", [], {}])
def test_garbage_is_no_settings(garbage):
    """Whatever comes instead of them."""
    with pytest.raises(BadSetting):
        settings_from_json(garbage)


def test_a_setting_that_is_not_told_is_as_usual(told):
    """A hand-over may have been written before the setting existed."""
    sent = settings_to_json(told)
    del sent["values"]["worker_idle"]

    assert settings_from_json(sent).worker_idle == Settings().worker_idle
    assert isinstance(settings_from_json(sent).project, Path)
