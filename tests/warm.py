"""The installed `bethink` as a process of its own, which has its modules from the start.

A command spends four fifths of its time on loading Python modules, and the tests start it a
thousand times. Here a process is forked for each from one that has loaded them, and runs what
the installed script runs: with arguments, files, folder, environment, signals and exit status of
its own. What a process loads, and how long that takes, is told by tests that start the script.
A program of Python's that imports Bethink can be started in the same way.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

SCRIPT = str(Path(sys.executable).with_name("bethink"))
# Where they differ Python itself, or a library, would start differently.
_READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "OMP_", "OPENBLAS_")
_ASKING = Lock()
# On the path of a process: its judge of two memories goes by their words.
JUDGING = str(Path(__file__).with_name("judging"))


class WarmPopen(subprocess.Popen[Any]):
    """A process as `subprocess.Popen` starts it."""

    _end: int

    def _execute_child(
        self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any,
        env: Any, startupinfo: Any, creationflags: Any, shell: Any, p2cread: int, p2cwrite: int,
        c2pread: int, c2pwrite: int, errread: int, errwrite: int, restore_signals: Any, gid: Any,
        gids: Any, uid: Any, umask: Any, start_new_session: bool, *_: Any,
    ) -> None:  # fmt: skip
        told = os.memfd_create("told")
        self._end, end = os.pipe()
        wanted = {
            "words": [*map(os.fsdecode, args)],
            "folder": os.fsdecode(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "new_session": start_new_session,
        }
        os.write(told, json.dumps(wanted).encode())
        os.lseek(told, 0, os.SEEK_SET)
        files = [max(p2cread, 0), c2pwrite if c2pwrite >= 0 else 1]
        files += [errwrite if errwrite >= 0 else 2, told, end]
        with _ASKING:
            channel = _channel()
            socket.send_fds(channel, [b"."], files)
            self.pid = int(channel.recv(32))
        os.close(told)
        os.close(end)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self.returncode is not None:
            return 0, 0
        if wait_flags & os.WNOHANG and not select.select([self._end], [], [], 0)[0]:
            return 0, 0
        status = os.read(self._end, 32)
        os.close(self._end)
        return self.pid, int(status)


@cache
def _channel() -> socket.socket:
    """Of a warm Python, started with the first command; it ends when nobody can ask it."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("warm_server.py")), str(its.fileno())],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[its.fileno()],
    )  # fmt: skip
    its.close()
    atexit.register(server.wait)
    atexit.register(ours.close)
    return ours


def popen(words: Sequence[str], **named: Any) -> subprocess.Popen[Any]:
    """Start a command as `subprocess.Popen` does, but from the warm Python where it can be."""
    return (WarmPopen if _can_be_warm(words, named) else subprocess.Popen)(words, **named)


def _can_be_warm(words: Sequence[str], named: dict[str, Any]) -> bool:
    program = words[0] == sys.executable and (words[1] == "-c" or words[1].endswith(".py"))
    if sys.platform != "linux" or "preexec_fn" in named or not (program or words[0] == SCRIPT):
        return False
    told = {k: v for k, v in (named.get("env") or {}).items() if k.startswith(_READ_AT_START)}
    if told.get("PYTHONPATH") == JUDGING:  # which the forked process loads itself
        del told["PYTHONPATH"]
    return all(os.environ.get(name) == value for name, value in told.items())


def run(
    words: Sequence[str], *, input: Any = None, timeout: float | None = None,  # noqa: A002
    check: bool = False, capture_output: bool = False, **named: Any,
) -> subprocess.CompletedProcess[Any]:  # fmt: skip
    """Run a command as `subprocess.run` does, but from the warm Python where it can be."""
    if capture_output:
        named |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        named["stdin"] = subprocess.PIPE
    with popen(words, **named) as process:
        try:
            output, errors = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    if check and process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words, output, errors)
    return subprocess.CompletedProcess(words, process.returncode, output, errors)
