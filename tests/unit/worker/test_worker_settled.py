"""Settings as their caller resolved them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.errors import BadSetting
from recollect.settings import Settings, load_settings
from recollect.spaces import resolve_space
from recollect.worker.settled import placed_reranker, read_settings, settled


@pytest.fixture
def told(tmp_path, monkeypatch):
    """What a caller in a project, with an environment of its own, would send."""
    (tmp_path / "shop" / ".recollect").mkdir(parents=True)
    (tmp_path / "shop" / ".recollect" / "config.toml").write_text('profile = "remind"\nk = 4\n')
    env = {
        "HOME": str(tmp_path),
        "RECOLLECT_CONFIG_DIR": str(tmp_path / "config"),
        "RECOLLECT_DATA_DIR": str(tmp_path / "data"),
        "REMIND_MIN_ACTIVATION": "0.3",
    }
    return load_settings(tmp_path / "shop", env, {"max_tokens": 500})


def there_and_back(settings: Settings) -> Settings:
    return read_settings(json.loads(json.dumps(settled(settings))))


def test_settings_mean_the_same_to_a_worker(told, tmp_path):
    """The same space, the same numbers, from the same places; nothing left to find out."""
    back = there_and_back(told)

    assert resolve_space(None, back)[:2] == resolve_space(None, told)[:2]
    assert back.given("k") == 4
    assert back.given("max_tokens") == 500
    assert back.given("track") is None
    assert back.origins == told.origins
    assert back.profile_folders() == told.profile_folders()
    assert back.changes("remind") == told.changes("remind") != ()


def test_what_was_found_by_itself_is_named(tmp_path, monkeypatch):
    """The data folder of the caller's environment, not of the worker's."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "theirs"))
    sent = settled(Settings())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "workers"))

    assert read_settings(sent).data_dir == tmp_path / "theirs" / "recollect"
    assert read_settings(sent).space == "personal"


def test_a_models_folder_is_where_the_caller_sees_it(tmp_path, monkeypatch):
    """A relative folder means nothing in another process; a name stays a name."""
    (tmp_path / "bert").mkdir()
    monkeypatch.chdir(tmp_path)

    sent = settled(Settings(embedder="transformer:bert", reranker="cross-encoder:bert"))

    assert sent["values"]["embedder"] == f"transformer:{tmp_path / 'bert'}"
    assert sent["values"]["reranker"] == f"cross-encoder:{tmp_path / 'bert'}"
    assert placed_reranker("cross-encoder:gone") == "cross-encoder:gone"
    assert placed_reranker("http://localhost/rerank") == "http://localhost/rerank"
    named = settled(Settings(embedder="sentence-transformers:some/model"))
    assert named["values"]["embedder"] == "sentence-transformers:some/model"


@pytest.mark.parametrize(
    "change",
    [
        lambda sent: sent.pop("values"),
        lambda sent: sent.update(more=1),
        lambda sent: sent["values"].update(nonsense=1),
        lambda sent: sent["values"].update(k=10**9),
        lambda sent: sent["values"].update(k=True),
        lambda sent: sent["values"].update(space="../../etc"),
        lambda sent: sent["values"].update(embedder="anything"),
        lambda sent: sent.update(project="relative/path"),
        lambda sent: sent.update(config=7),
        lambda sent: sent["theirs"].update(home="a\x00b"),
        lambda sent: sent["theirs"].update(variables={"A": 1}),
        lambda sent: sent["theirs"].pop("home"),
        lambda sent: sent["origins"].update(k=["rumour", ""]),
        lambda sent: sent["origins"].update(nonsense=["argument", ""]),
        lambda sent: sent["origins"].update(k="argument"),
        lambda sent: sent["origins"].update(data_dir=["project file", "x"]),
    ],
)
def test_settings_are_checked_as_strictly_as_a_file(told, change):
    """Anything amiss is refused; a project may no more than it could before."""
    sent = json.loads(json.dumps(settled(told)))
    change(sent)

    with pytest.raises(BadSetting):
        read_settings(sent)


@pytest.mark.parametrize("garbage", [None, 7, "x", [], {}])
def test_garbage_is_no_settings(garbage):
    """Whatever comes instead of them."""
    with pytest.raises(BadSetting):
        read_settings(garbage)


def test_a_setting_that_is_not_told_is_as_usual(told):
    """A hand-over may have been written before the setting existed."""
    sent = settled(told)
    del sent["values"]["worker_idle"]

    assert read_settings(sent).worker_idle == Settings().worker_idle
    assert isinstance(read_settings(sent).project, Path)
