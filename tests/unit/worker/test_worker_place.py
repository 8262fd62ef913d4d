"""Where a worker is found, and that nobody else can put anything there."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from recollect.settable import Settings
from recollect.worker.environment import environment_of
from recollect.worker.hello import Hello, own_hello, read_hello
from recollect.worker.lock import holder, is_held, sign, take
from recollect.worker.place import Place, find_place, make_private
from recollect.worker.wanted import is_wanted

posix = pytest.mark.skipif(sys.platform == "win32", reason="folders have no modes here")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return tmp_path


@posix
def test_the_sessions_own_folder_is_used_where_there_is_one(home, monkeypatch):
    """Sockets go where the session keeps its own, what must stay goes with the state."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))

    place = find_place()

    assert place.folder == home / "recollect"
    assert place.spool == home / "s" / "recollect" / "spool"


@posix
@pytest.mark.parametrize("named", ["/", "/nowhere", "relative", "", "/etc/hostname"])
def test_a_folder_that_is_not_ours_is_not_the_sessions(home, monkeypatch, named):
    """After su the variable still names another's; "/" is root's, and not for sockets."""
    if named == "/" and os.geteuid() == 0:
        pytest.skip("to root it is ours")
    monkeypatch.setenv("XDG_RUNTIME_DIR", named)

    assert find_place().folder != Path(named) / "recollect"


@posix
def test_a_path_too_long_for_a_socket_becomes_a_short_one(home, monkeypatch):
    """By a hash, so that it is always the same one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ("long" * 30)))

    place = find_place()

    assert len(os.fsencode(place.door)) <= 100
    assert place.folder == find_place().folder
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ("other" * 30)))
    assert place.folder != find_place().folder


@posix
def test_a_folder_is_made_for_the_owner_alone(tmp_path):
    """Whatever the umask says; one of ours that others could enter is closed."""
    folder = tmp_path / "a" / "b"
    make_private(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    folder.chmod(0o777)
    make_private(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@posix
def test_a_link_or_another_users_folder_is_refused(tmp_path):
    """Somebody may have been there first, in a folder that is everybody's."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(PermissionError):
        make_private(tmp_path / "link")
    if os.geteuid() == 0:
        os.chown(tmp_path / "real", 65_534, 65_534)
        with pytest.raises(PermissionError):
            make_private(tmp_path / "real")


def test_a_lock_has_one_holder_and_dies_with_it(tmp_path):
    """The file may stay; the lock goes with the handle."""
    path = tmp_path / "lock"
    assert not is_held(path)

    handle = take(path)
    assert handle is not None
    sign(handle)
    assert take(path) is None
    assert is_held(path)
    assert holder(path) == os.getpid()

    os.close(handle)
    assert not is_held(path)
    assert holder(path) is None


def test_a_worker_is_wanted_by_the_models_own_registration():
    """One that takes long to load; the settings can say otherwise."""
    assert not is_wanted(Settings())
    assert not is_wanted(Settings(embedder="ollama:nomic"))
    assert not is_wanted(Settings(reranker="overlap"))
    assert is_wanted(Settings(embedder="transformer"))
    assert is_wanted(Settings(embedder="sentence-transformers:x"))
    assert is_wanted(Settings(reranker="cross-encoder:folder"))
    assert is_wanted(Settings(), reranker="cross-encoder")
    assert not is_wanted(Settings(reranker="cross-encoder"), reranker="none")
    assert is_wanted(Settings(worker="on"))
    assert not is_wanted(Settings(worker="off", embedder="transformer"))


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        (Settings(embedder="openai:m"), "OPENAI_API_KEY"),
        (Settings(embedder="ollama:m"), "OLLAMA_HOST"),
        (Settings(embedder="sentence-transformers:m"), "HF_HOME"),
        (Settings(reranker="https://h/p"), "RECOLLECT_RERANK_API_KEY"),
        (Settings(llm="anthropic:m"), "ANTHROPIC_API_KEY"),
        (Settings(llm="openai:m"), "RECOLLECT_LLM_TIMEOUT_S"),
    ],
)
def test_what_a_model_reads_of_the_environment_must_be_the_same(settings, variable):
    """By its registration; models that read nothing get on with any environment."""
    one, other = {variable: "secret", "PATH": "x"}, {variable: "b", "PWD": "y"}

    assert environment_of(settings, one) != environment_of(settings, other)
    assert environment_of(settings, one) == environment_of(settings, {**one, "PATH": "z"})
    assert "secret" not in environment_of(settings, one)
    assert environment_of(Settings(embedder="transformer"), one) == ""
    assert environment_of(Settings(), one) == ""


@pytest.mark.parametrize("value", [None, [], {}, [1], ["1", "a", "b"], [True, "a", "b"],
                                   [1, "a", 7], [1, "a", "b", "c"]])  # fmt: skip
def test_garbage_is_nobodys_hello(value):
    """Then it is another version that calls."""
    assert read_hello(value) is None


def test_a_hello_comes_back_as_it_was():
    """JSON makes a list of it."""
    assert read_hello(list(own_hello())) == own_hello()
    assert read_hello([1, "a", "b"]) == Hello(1, "a", "b")


def test_a_place_that_cannot_be_looked_at_is_closed(tmp_path):
    """Whatever the system has against it, nobody is there, and hooks go on without."""
    place = Place(tmp_path, tmp_path, "test")
    assert not place.is_open
    place.door.touch()
    assert place.is_open

    assert not place._replace(folder=tmp_path / ("x" * 300)).is_open
