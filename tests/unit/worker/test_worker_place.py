"""Where a worker is found, and that nobody else can put anything there."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bethink import version
from bethink.config.settings import Settings
from bethink.worker import environment_hash, should_start_worker
from bethink.worker.client import stop_worker
from bethink.worker.files import (
    WorkerPaths,
    acquire_lock,
    is_locked,
    lock_holder,
    make_private,
    worker_paths,
    write_lock_pid,
)
from bethink.worker.transport import own_handshake
from rows import each_row

posix = pytest.mark.skipif(sys.platform == "win32", reason="folders have no modes here")


@pytest.fixture
def home(monkeypatch):
    # Not the test's own folder, whose name may be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="b") as short:
        folder = Path(short).resolve()
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "s"))
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        yield folder


@posix
def test_the_sessions_own_folder_is_used_where_there_is_one(home, monkeypatch):
    """Sockets go where the session keeps its own, what must stay goes with the state."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))

    place = worker_paths()

    assert place.folder == home / "bethink"
    assert place.spool == home / "s" / "bethink" / "spool"


@posix
@each_row("named", ["/", "/nowhere", "relative", "", "/etc/hostname"])
def test_a_folder_that_is_not_ours_is_not_the_sessions(home, monkeypatch, named):
    """After su the variable still names another's; "/" is root's, and not for sockets."""
    if named == "/" and os.geteuid() == 0:
        pytest.skip("to root it is ours")
    monkeypatch.setenv("XDG_RUNTIME_DIR", named)

    assert worker_paths().folder != Path(named) / "bethink"


@posix
def test_a_path_too_long_for_a_socket_becomes_a_short_one(home, monkeypatch):
    """By a hash, so that it is always the same one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ("long" * 30)))

    place = worker_paths()

    assert len(os.fsencode(place.socket_path)) <= 100
    assert place.folder == worker_paths().folder
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ("other" * 30)))
    assert place.folder != worker_paths().folder


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
    assert not is_locked(path)

    handle = acquire_lock(path)
    assert handle is not None
    write_lock_pid(handle)
    assert acquire_lock(path) is None
    assert is_locked(path)
    assert lock_holder(path) == os.getpid()

    os.close(handle)
    assert not is_locked(path)
    assert lock_holder(path) is None


def test_a_worker_is_wanted_by_the_models_own_registration():
    """One that takes long to load; the settings can say otherwise."""
    assert not should_start_worker(Settings())
    assert not should_start_worker(Settings(embedder="ollama:nomic"))
    assert not should_start_worker(Settings(reranker="overlap"))
    assert should_start_worker(Settings(embedder="sentence-transformers:x"))
    assert should_start_worker(Settings(reranker="cross-encoder:folder"))
    assert should_start_worker(Settings(), reranker="cross-encoder")
    assert not should_start_worker(Settings(reranker="cross-encoder"), reranker="none")
    assert should_start_worker(Settings(worker="on"))
    assert not should_start_worker(Settings(worker="off", embedder="sentence-transformers:x"))


@each_row(
    ("settings", "variable"),
    [
        (Settings(embedder="openai:m"), "OPENAI_API_KEY"),
        (Settings(embedder="ollama:m"), "OLLAMA_HOST"),
        (Settings(embedder="sentence-transformers:m"), "HF_HOME"),
        (Settings(reranker="cross-encoder"), "HF_HOME"),
        (Settings(reranker="https://h/p"), "BETHINK_RERANK_API_KEY"),
        (Settings(llm="anthropic:m"), "ANTHROPIC_API_KEY"),
        (Settings(llm="openai:m"), "BETHINK_LLM_TIMEOUT_S"),
        (Settings(embedder="openai:m"), "SSL_CERT_FILE"),
        (Settings(store="postgresql:///memories"), "PGHOST"),
        (Settings(store="postgres://host/memories"), "PGPASSWORD"),
    ],
)
def test_what_models_and_the_store_read_of_the_environment_must_be_the_same(settings, variable):
    """By its registration; models that read nothing get on with any environment."""
    one, other = {variable: "secret", "PATH": "x"}, {variable: "b", "PWD": "y"}

    assert environment_hash(settings, one) != environment_hash(settings, other)
    assert environment_hash(settings, one) == environment_hash(settings, {**one, "PATH": "z"})
    assert "secret" not in environment_hash(settings, one)
    assert environment_hash(Settings(embedder="hash"), one) == ""
    assert environment_hash(Settings(), one) == ""


def test_another_installation_of_the_same_version_is_another(tmp_path, monkeypatch):
    """Installed in the same place: a worker of the old one must not answer for the new one."""
    installed = tmp_path / "version.py"
    installed.touch()
    monkeypatch.setattr(version, "__file__", str(installed))
    before = own_handshake()
    assert own_handshake() == before

    os.utime(installed, (1, 1))

    assert own_handshake() != before


@posix
def test_nobody_is_ended_for_what_a_folder_of_others_says(tmp_path):
    """A temporary folder may be another user's, with a lock that names any process of ours."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    place = WorkerPaths(tmp_path / "link", tmp_path, "key")
    handle = acquire_lock(place.lock)
    with subprocess.Popen(["sleep", "60"]) as innocent:
        try:
            os.write(handle, str(innocent.pid).encode())
            assert stop_worker(place) is None
            assert innocent.poll() is None
        finally:
            innocent.kill()
            os.close(handle)


def test_a_place_that_cannot_be_looked_at_is_closed(tmp_path):
    """Whatever the system has against it, nobody is there, and hooks go on without."""
    place = WorkerPaths(tmp_path, tmp_path, "test")
    assert not place.is_open
    place.socket_path.touch()
    assert place.is_open

    assert not place._replace(folder=tmp_path / ("x" * 300)).is_open
