"""The worker as a process of its own: started, asked, killed, and never missed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

import warm
from asking import answered_here, asked
from bethink import Memory
from bethink.worker.client import (
    control_worker,
    enqueue_job,
    request_worker,
    start_worker,
    stop_worker,
)
from bethink.worker.files import lock_holder, make_private
from bethink.worker.spool import Spool
from corpus import NOW
from worker_desk import Desk, desk, until

__all__ = ["desk"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are others there")
# A hundred were run once; twenty are enough to notice.
CYCLES = 20
SCRIPT = str(Path(sys.executable).with_name("bethink"))


def processes(desk: Desk) -> list[int]:
    """Those that were started for this desk and are still there."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(desk.place.folder) in words:
                found.append(int(entry.name))
    return found


has_processes = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc")


def filled(desk: Desk) -> Memory:
    memory = Memory.open(settings=desk.settings)
    memory.remember("The deploy key lives in vault B")
    memory.remember("Anna prefers tabs over spaces")
    return memory


def question(text: str = "where is the deploy key?") -> dict[str, object]:
    return asked(text)


def test_a_question_starts_a_worker_and_gets_its_answer(desk):
    """The first already; the answer is that of this process, to the last bit."""
    with filled(desk) as memory:
        own = answered_here(memory, "recall", asked("where is the deploy key?", None, {}, NOW))

    told = desk.make_request("recall", asked("where is the deploy key?", None, {}, NOW))

    assert told == own
    assert desk.status()["jobs"]["done"] == 1


def test_a_worker_is_nobodys_child(desk):
    """Its own session, the root as its folder, no stream and no file of who started it."""
    with (desk.runtime / "inherited").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        pid = desk.start()

    where = Path(f"/proc/{pid}")
    if not where.exists():
        pytest.skip("no /proc to look into")
    opened = {os.path.realpath(link).rpartition("/")[2] for link in (where / "fd").iterdir()}
    streams = {(where / "fd" / number).readlink() for number in "012"}
    assert os.getsid(pid) == pid
    assert (where / "cwd").readlink() == Path("/")
    assert "inherited" not in opened
    assert streams == {Path("/dev/null")}
    parent = (where / "stat").read_text().rpartition(")")[2].split()[1]
    assert int(parent) != os.getpid()


def test_the_socket_is_the_owners_alone(desk):
    """And so is its folder."""
    desk.start()

    assert desk.place.socket_path.stat().st_mode & 0o777 == 0o600
    assert desk.place.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be others"
)
def test_another_user_is_not_answered(desk):
    """Even where the folder lets it in: the kernel says who calls."""
    desk.start()
    desk.runtime.chmod(0o711)
    desk.place.folder.chmod(0o711)
    desk.place.socket_path.chmod(0o666)
    code = (
        "import os, socket, sys\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        's.sendall(b\'\\x00\\x00\\x00\\x0f{"kind":"stop"}\'); print(len(s.recv(100)))\n'
    )

    ran = subprocess.run(
        [sys.executable, "-c", code, str(desk.place.socket_path)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    # Hung up on, before or after its words.
    assert ran.stdout.strip() == "0" or re.search("Reset|BrokenPipe", ran.stderr)
    desk.place.folder.chmod(0o700)
    assert desk.status() is not None


def test_sixteen_callers_at_once_start_one_worker_and_are_all_answered(desk):
    """Whoever comes second finds it."""
    filled(desk).close()

    with ThreadPoolExecutor(16) as callers:
        told = list(callers.map(lambda _: desk.make_request("recall", question()), range(16)))

    found = [json.loads(one["text"])["items"][0]["text"] for one in told if one is not None]
    assert set(found) == {"The deploy key lives in vault B"}
    # On a busy machine those do it themselves who would wait for too long.
    assert desk.status()["jobs"]["done"] == len(found)


@has_processes
def test_two_starters_at_once_start_one_worker(desk):
    """The kernel gives the lock to one of them; both are told that there is a worker."""
    with ThreadPoolExecutor(4) as starters:
        ready = list(starters.map(lambda _: start_worker(desk.place, 60, wait_s=20), range(4)))

    assert ready == [True] * 4
    until(lambda: len(processes(desk)) == 1)
    assert processes(desk) == [lock_holder(desk.place.lock)]


def test_a_worker_killed_in_the_middle_of_a_question_is_not_missed(desk):
    """The caller has no answer, and is not kept waiting for one."""
    pid = desk.start()
    os.kill(pid, signal.SIGSTOP)  # so that it is certainly in the middle
    reasons: list[str] = []
    answers: list[object] = []
    # Whoever comes too late for the middle, on a busy machine, must not start another.
    caller = Thread(target=lambda: answers.append(
        desk.make_request("recall", question(), note=reasons.append, start=False)))  # fmt: skip
    caller.start()
    time.sleep(0.2)

    os.kill(pid, signal.SIGKILL)
    caller.join(60)

    assert answers == [None]
    assert reasons
    assert desk.place.socket_path.exists()  # left behind; no obstacle:
    until(lambda: not desk.is_alive())
    assert desk.make_request("recall", question()) is not None


def test_a_worker_that_hangs_costs_the_deadline_and_no_more(desk):
    """Then the caller does it itself."""
    pid = desk.start()
    os.kill(pid, signal.SIGSTOP)

    assert desk.make_request("recall", question(), deadline_s=0.3) is None

    os.kill(pid, signal.SIGCONT)


def test_a_worker_that_hangs_is_waited_for_once(desk):
    """Who finds that it answers no ping either ends it; who has but a moment does not."""
    pid = desk.start()
    os.utime(desk.place.lock, (0, 0))  # it is not starting any more
    os.kill(pid, signal.SIGSTOP)
    reasons: list[str] = []

    # No deadline of hours is waited for.
    assert desk.make_request("recall", question(), deadline_s=7200, note=reasons.append) is None

    assert "was stopped" in reasons[-1]
    assert desk.make_request("recall", question()) is not None
    assert lock_holder(desk.place.lock) != pid


def test_a_hanging_worker_can_be_ended_all_the_same(desk):
    """Asked, told, killed; nothing of it is left."""
    pid = desk.start()
    os.kill(pid, signal.SIGSTOP)

    assert stop_worker(desk.place) is True

    assert not desk.is_alive()
    assert stop_worker(desk.place) is None


def test_whoever_ends_it_hears_that_it_has_ended(desk):
    """Every time: its last words are told before it goes."""
    for _ in range(5):
        desk.start()
        assert stop_worker(desk.place) is True
        assert stop_worker(desk.place) is None


def test_sigterm_ends_it_in_order(desk):
    """The socket is gone, the lock is free."""
    pid = desk.start()

    os.kill(pid, signal.SIGTERM)

    until(lambda: not desk.is_alive())
    assert not desk.place.socket_path.exists()
    assert "ending: SIGTERM" in desk.place.log.read_text()


def test_an_idle_worker_is_gone_by_itself(desk):
    """After the time that the settings of who asked last say."""
    desk.settings = replace(desk.settings, worker_idle=1)
    assert desk.make_request("recall", question()) is not None

    until(lambda: not desk.is_alive())
    assert not desk.place.socket_path.exists()


@has_processes
def test_starting_and_killing_leaves_nothing_behind(desk):
    """No process, no lock that is held, no file that keeps the next one from starting."""
    for _ in range(CYCLES):
        desk.kill(desk.start())

    assert processes(desk) == []
    assert desk.start() in processes(desk)


@has_processes
def test_an_orphaned_folder_ends_its_worker(desk):
    """Whoever removes the folder is rid of the worker."""
    desk.start()
    shutil.rmtree(desk.place.folder)

    until(lambda: processes(desk) == [])


def transcript(folder: Path, turns: int) -> Path:
    """A session as the host writes it down."""
    path = folder / "session.jsonl"
    with path.open("w") as file:
        for n in range(turns):
            who = "assistant" if n % 2 else "user"
            said = f"We store the {n}th parcel in warehouse {n}, behind gate {n + 3}"
            content = [{"type": "text", "text": said}] if n % 2 else said
            entry = {
                "type": who,
                "uuid": f"00000000-0000-4000-8000-{n:012d}",
                "sessionId": "s1",
                "timestamp": f"2026-03-01T10:{n:02d}:00.000Z",
                "cwd": str(folder),
                "message": {"role": who, "content": content},
            }
            file.write(json.dumps(entry) + "\n")
    return path


def handed(path: Path) -> dict[str, str]:
    return {"transcript": str(path), "session": "s1", "host": "claude-code"}


def stored(desk: Desk) -> int:
    with Memory.open(settings=desk.settings) as memory:
        return len(memory.browse(limit=100))


def test_what_is_handed_over_is_done_without_waiting(desk, tmp_path):
    """Whoever hands over goes on; a worker is started, and does it."""
    path = transcript(tmp_path, 6)

    assert desk.hand_over("capture", handed(path)) is True

    until(lambda: Spool(desk.place.spool).waiting() == [] and stored(desk) == 6)


def test_a_hand_over_survives_the_death_of_the_worker_and_is_done_once(desk, tmp_path):
    """Killed at any moment: the next worker does it, and nothing is stored twice."""
    path = transcript(tmp_path, 8)
    filled(desk).close()
    for delay in (0.0, 0.02, 0.1, 0.3):
        assert desk.hand_over("capture", handed(path))
        until(desk.is_alive)
        time.sleep(delay)
        pid = lock_holder(desk.place.lock)
        if pid is not None:
            desk.kill(pid)

    assert desk.hand_over("capture", handed(path))
    desk.start()
    until(lambda: Spool(desk.place.spool).waiting() == [])

    assert stored(desk) == 2 + 8
    assert Spool(desk.place.spool).failed() == []


def test_a_model_can_be_loaded_ahead_of_the_first_question(desk):
    """Nobody waits for it; where it cannot be loaded, that is no failure to try again."""
    for embedder in ("hash", "sentence-transformers:/nowhere"):
        desk.settings = replace(desk.settings, embedder=embedder)
        assert desk.hand_over("warm", {})
        until(lambda: desk.status() and Spool(desk.place.spool).waiting() == [])

    jobs = desk.status()["jobs"]
    assert (jobs["done"], jobs["failed"], jobs["given_up"]) == (2, 0, 0)


def test_a_hand_over_that_cannot_be_kept_is_left_to_the_caller(desk, tmp_path):
    """Nothing is lost in silence: where the disk says no, the caller hears it."""
    desk.place.state.mkdir(parents=True)
    desk.place.spool.write_text("a file where the folder belongs")
    reasons: list[str] = []

    kept = enqueue_job("capture", {}, settings=desk.settings, note=reasons.append, place=desk.place)

    assert kept is False
    assert reasons


def test_what_nobody_works_off_is_left_to_the_caller(desk, tmp_path):
    """A worker that cannot start must not swallow what is handed over, time after time."""
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    desk.place.state.symlink_to(tmp_path / "elsewhere")  # where no worker would start
    work = handed(transcript(tmp_path, 2))
    assert desk.hand_over("capture", work) is True
    (name,) = Spool(desk.place.spool).waiting()
    long_ago = time.time() - 60
    os.utime(desk.place.spool / name, (long_ago, long_ago))

    assert desk.hand_over("capture", work) is False
    assert desk.hand_over("warm", {}) is False


def test_without_a_worker_nothing_is_started(desk):
    """The setting off, or who asks only one that is there."""
    off = replace(desk.settings, worker="off")

    assert request_worker("recall", question(), settings=off, place=desk.place) is None
    assert enqueue_job("capture", {}, settings=off, place=desk.place) is False
    assert desk.make_request("recall", question(), start=False) is None
    assert control_worker("status", desk.place) is None
    assert not desk.is_alive()


def test_a_foreign_program_at_the_door_is_no_worker(desk):
    """Whatever it answers, the caller does it itself."""
    make_private(desk.place.folder)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(desk.place.socket_path))
    server.listen()
    replies = [b"", b"\x00\x00\x00\x02{}", b"\xff" * 50, b'\x00\x00\x00\x0d{"answer": 7}']

    def answer() -> None:
        for reply in replies:
            caller, _ = server.accept()
            with caller:
                caller.recv(65_536)
                caller.sendall(reply)

    Thread(target=answer, daemon=True).start()
    with server:
        told = [desk.make_request("recall", question(), start=False) for _ in replies]

    assert told == [None, None, None, 7]


def test_the_command_line_looks_after_it(desk, tmp_path):
    """Started, looked at and ended; each says by its exit code whether there was one."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("BETHINK_")}
    env |= {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"),
            "XDG_RUNTIME_DIR": str(desk.runtime), "BETHINK_DATA_DIR": str(tmp_path / "data"),
            "BETHINK_EMBEDDER": "none", "BETHINK_WORKER_IDLE": "77"}  # fmt: skip

    def run(*words: str, code: int = 0) -> str:
        ran = warm.run(
            [SCRIPT, *words], env=env, cwd=tmp_path, capture_output=True, text=True, check=False,
            timeout=60,
        )  # fmt: skip
        assert ran.returncode == code, (words, ran.stdout, ran.stderr)
        return ran.stdout

    assert json.loads(run("worker", "--json", code=1))["running"] is False
    assert "no worker is running" in run("worker", "status", code=1)
    assert json.loads(run("worker", "stop", "--json", code=1)) == {"stopped": False}
    try:
        told = json.loads(run("worker", "start", "--json"))
        assert json.loads(run("worker", "start", "--json"))["pid"] == told["pid"]
        run("worker", "run", code=1)
        assert "idle limit" not in run("worker", "status")
    finally:
        assert json.loads(run("worker", "stop", "--json")) == {"stopped": True}
    assert told["idle_limit_s"] == 77
    assert told["memory_bytes"] > 1_000_000
    assert Path(told["log"]).read_text().count("ending: stop requested") == 1
    assert not Path(told["socket"]).exists()


def test_a_worker_in_the_foreground_ends_by_ctrl_c(desk, tmp_path):
    """With its log for who watches."""
    env = os.environ | {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"),
                        "XDG_RUNTIME_DIR": str(desk.runtime)}  # fmt: skip
    ran = subprocess.Popen([SCRIPT, "worker", "run"], env=env, stderr=subprocess.PIPE, text=True)
    assert ran.stderr is not None
    first = ran.stderr.readline()

    ran.send_signal(signal.SIGINT)
    _, rest = ran.communicate(timeout=60)

    assert "listening" in first
    assert "ending: SIGINT" in rest
    assert ran.returncode == 0
