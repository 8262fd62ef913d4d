"""Two homes and two processes: over ssh, and with a server."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import warm
from server_process import SCRIPT, clean_environment

# Stands in for ssh: what it is asked to run elsewhere runs here, in the other home.
SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
shift 2
shift
BETHINK_DATA_DIR={there} exec {script} "$@"
"""


def run(folder: Path, *words: str, **extra: str) -> str:
    done = warm.run(
        [SCRIPT, "--space", "notes", *words], cwd=folder, env=clean_environment(folder, **extra),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def digest(folder: Path) -> str:
    return str(json.loads(run(folder, "sync", "status", "--json"))["hash"])


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "laptop", tmp_path / "desktop"
    for name in made:
        name.mkdir()
        run(name, "remember", f"Stored on the {name.name}", "--id", name.name)
    return made


def test_two_homes_agree_over_ssh(homes: tuple[Path, Path]) -> None:
    laptop, desktop = homes
    ssh = laptop / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH.format(there=desktop / "data", script=SCRIPT))
    ssh.chmod(0o755)
    path = f"{ssh.parent}{os.pathsep}{os.environ['PATH']}"
    run(laptop, "sync", "ssh://me@desktop:2222", PATH=path)
    assert digest(laptop) == digest(desktop)
    assert "Stored on the laptop" in run(desktop, "show", "laptop")
    run(desktop, "forget", "laptop", "--erase", "--yes")
    run(laptop, "sync", PATH=path)
    assert digest(laptop) == digest(desktop)
    assert "Stored on the laptop" not in run(laptop, "list")


SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
SSHD_CONFIG = """
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
"""


@pytest.mark.skipif(SSHD is None, reason="there is no sshd (openssh-server)")
def test_two_homes_agree_over_a_real_sshd(homes: tuple[Path, Path], tmp_path: Path) -> None:
    laptop, desktop = homes
    for name in ("host", "key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(words, check=True)
    (tmp_path / "sshd").write_text(SSHD_CONFIG.format(folder=tmp_path))
    options = f"IdentityFile {tmp_path}/key\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null"
    (tmp_path / "ssh").write_text(f"{options}\nLogLevel ERROR\n")
    here, there = laptop / "bin" / "ssh", desktop / "bethink"
    here.parent.mkdir()
    here.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {tmp_path}/ssh "$@"\n')
    there.write_text(f'#!/bin/sh\nBETHINK_DATA_DIR={desktop}/data exec {SCRIPT} "$@"\n')
    for path in (here, there):
        path.chmod(0o755)
    if os.geteuid() == 0:  # where the server lives that gives up its rights
        Path("/run/sshd").mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [str(SSHD), "-D", "-e", "-f", str(tmp_path / "sshd"), "-p", str(port)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_for(port, server)
            target = f"ssh://{getpass.getuser()}@127.0.0.1:{port}{there}"
            path = f"{here.parent}{os.pathsep}{os.environ['PATH']}"
            run(laptop, "sync", target, PATH=path)
            assert digest(laptop) == digest(desktop)
            assert "Stored on the laptop" in run(desktop, "show", "laptop")
        finally:
            server.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + 120
    while time.monotonic() < give_up and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


def test_several_spaces_go_in_one_call(homes: tuple[Path, Path], tmp_path: Path) -> None:
    laptop, desktop = homes
    drive = tmp_path / "drive"
    drive.mkdir()
    run(laptop, "remember", "Only at work", "--id", "w", "--space", "work")
    run(laptop, "sync", str(drive), "--spaces", "all", "--name", "laptop")
    run(desktop, "sync", str(drive), "--spaces", "notes,work", "--accept", "laptop")
    assert "Stored on the laptop" in run(desktop, "show", "laptop")
    assert "Only at work" in run(desktop, "show", "w", "--space", "work")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = warm.popen(
        [SCRIPT, "--space", "notes", "serve", "--port", str(port)], cwd=folder,
        env=clean_environment(folder), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with process:
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def test_two_homes_agree_with_a_server(homes: tuple[Path, Path]) -> None:
    laptop, desktop = homes
    made = json.loads(run(desktop, "token", "create", "sync", "--scope", "admin", "--json"))
    reader = json.loads(run(desktop, "token", "create", "reader", "--scope", "read", "--json"))
    with served(desktop) as url:
        run(laptop, "sync", url, BETHINK_SYNC_TOKEN=made["token"])
        with pytest.raises(AssertionError, match=r"scope|right|may"):
            run(laptop, "sync", url, BETHINK_SYNC_TOKEN=reader["token"])
    assert digest(laptop) == digest(desktop)
    assert "Stored on the desktop" in run(laptop, "show", "desktop")
