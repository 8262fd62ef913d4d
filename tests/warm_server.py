"""A Python that has loaded Bethink, and forks a process for each program it is asked to run.

Started by `warm`, with the number of a socket. A request has five open files: what is to be
the command's input, output and errors, a file that tells the command, and a pipe to which its
exit status is written. The answer is the number of the process.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import runpy
import select
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

import bethink
from warm import JUDGING

# A hook counts its time from the import on; the others no command needs, or they need much.
_LEFT_OUT = tuple(
    f"bethink.{name}" for name in ("__main__", "demo", "eval", "hooks", "integrations", "testing")
)


def load() -> None:
    """Import what commands import, and make ready what is made at its first use."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as a command does before it loads NumPy
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for module in pkgutil.walk_packages(bethink.__path__, "bethink."):
        if not module.name.startswith(_LEFT_OUT):
            import_module(module.name)
    with bethink.Memory.open(":memory:", settings=bethink.Settings()) as memory:
        memory.remember_many(["Ada keeps the key in vault B", "Ada keeps the key in vault C"])
        memory.recall("where does Ada keep the key?")
    gc.collect()
    gc.freeze()  # so that a process does not touch what it shares with this one


def serve(channel: socket.socket) -> None:
    """Fork for each request until nobody is left to ask; in a forked process it returns."""
    running: dict[int, tuple[int, int]] = {}
    waiting = select.poll()
    waiting.register(channel, select.POLLIN)
    while True:
        for ready, _ in waiting.poll():
            if ready != channel.fileno():
                waiting.unregister(ready)
                _tell_end(ready, *running.pop(ready))
                continue
            _, files, _, _ = socket.recv_fds(channel, 1, 5)
            if not files:
                sys.exit()
            pid = os.fork()
            if not pid:
                return _become(*files[:4])
            for one in files[:4]:
                os.close(one)
            ends = os.pidfd_open(pid)
            running[ends] = pid, files[4]
            waiting.register(ends, select.POLLIN)
            channel.send(str(pid).encode())


def _tell_end(ends: int, pid: int, told: int) -> None:
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):  # nobody waits for it any more
        os.write(told, str(status).encode())
    os.close(told)
    os.close(ends)


def _become(given: int, output: int, errors: int, told: int) -> None:
    """Make this process the command's, with its files, its folder and its environment."""
    with open(told, encoding="utf-8", closefd=False) as file:
        wanted = json.load(file)
    for number, file_number in enumerate((given, output, errors)):
        os.dup2(file_number, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if wanted["new_session"]:
        os.setsid()
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environb.update({os.fsencode(k): os.fsencode(v) for k, v in wanted["environment"].items()})
    sys.argv[:] = wanted["words"]
    if os.environ.get("PYTHONPATH") == JUDGING:
        runpy.run_path(str(Path(JUDGING, "sitecustomize.py")))
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        before = getattr(sys, name)
        buffering = 1 if name == "stderr" or os.isatty(number) else -1
        made = os.fdopen(number, mode, buffering, before.encoding, before.errors)
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)


def run_program() -> None:
    """Run what the words name: the installed script, a program of Python's, or its text."""
    if sys.argv[0] != sys.executable:
        sys.path[0] = str(Path(sys.argv[0]).parent)
        from bethink.cli import main

        sys.exit(main())
    del sys.argv[0]
    if sys.argv[0] != "-c":
        sys.path[0] = str(Path(sys.argv[0]).parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
        return
    sys.path[0] = ""
    made = sys.modules["__main__"] = ModuleType("__main__")
    exec(compile(sys.argv.pop(1), "<string>", "exec"), vars(made))


if __name__ == "__main__":
    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
    run_program()
