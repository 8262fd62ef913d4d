"""A worker's manners, in this very process: whom it answers, and what it says instead."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.core.json_values import Json
from bethink.core.registry import import_own_class
from bethink.errors import Refused, StoreBusy
from bethink.version import __version__
from bethink.worker import environment_hash
from bethink.worker.client import (
    OTHER_ENVIRONMENT,
    control_worker,
    request_worker,
    settings_to_json,
)
from bethink.worker.files import MAX_LOG_BYTES, LogFile, WorkerPaths, make_private
from bethink.worker.server import _MAX_CALLERS, JOBS, WorkerServer
from bethink.worker.spool import QueuedJob, Spool
from bethink.worker.transport import (
    MAX_REPLY_BYTES,
    MAX_REQUEST_BYTES,
    _read_port_file,
    connect,
    encode_frame,
    listen,
    own_handshake,
    receive_message,
)
from rows import each_row
from worker_desk import Desk, desk, until

__all__ = ["desk"]

held = Event()
tidied: list[object] = []


def _fail(memory, payload):
    raise ZeroDivisionError("the words of a memory")


def _refuse(memory, payload):
    raise Refused("not today")


def _busy(memory, payload):
    raise StoreBusy("written by others")


def _hold(memory, payload):
    held.wait(60)
    return {"held": True}


def _import(memory, payload):
    return import_own_class(payload["use"]).__name__


JOBS = {
    "import": _import,
    "echo": lambda memory, payload: payload,
    "space": lambda memory, payload: memory.store.space,
    "fail": _fail,
    "refuse": _refuse,
    "busy": _busy,
    "hold": _hold,
    "odd": lambda memory, payload: object(),
    "large": lambda memory, payload: "x" * MAX_REPLY_BYTES,
    "maintain": lambda memory, payload: tidied.append(memory.store.space),
    "capture": lambda memory, payload: payload,
    "recall": JOBS["recall"],
}


class Serving:
    """A server in a thread, and the ways to call it."""

    def __init__(self, desk: Desk, place: WorkerPaths, **more: float) -> None:
        make_private(place.folder)
        make_private(place.state)
        self.desk, self.place = desk, place
        given = {"idle_s": 60, **more}
        self.server = WorkerServer(place, listen(place), log=LogFile(place.log), jobs=JOBS, **given)
        self.thread = Thread(target=self.server.run, daemon=True)
        self.thread.start()

    def make_request(self, kind: str, payload: Json, **more: object) -> object:
        given = {"settings": self.desk.settings, "place": self.place, "start": False} | more
        return request_worker(kind, payload, **given)

    def say(self, **request: object) -> Json:
        """One message, just as it is given."""
        deadline = time.monotonic() + 60
        with connect(self.place, deadline) as sock:
            sock.sendall(encode_frame(request, MAX_REQUEST_BYTES))
            return receive_message(sock, MAX_REPLY_BYTES, deadline)

    def end(self) -> None:
        self.server.request_stop("test over")
        self.thread.join(60)
        assert not self.thread.is_alive()


@pytest.fixture(params=["unix", "loopback"])
def serving(desk, request):
    """By a socket, and by a port as where there are none."""
    held.clear()
    made = Serving(desk, desk.place._replace(unix=request.param == "unix"))
    yield made
    held.set()
    made.end()
    assert not made.place.socket_path.exists()


def test_a_caller_gets_its_answer(serving):
    """Of the space that its settings name."""
    assert serving.make_request("echo", {"a": "ü\ud800"}) == {"a": "ü\ud800"}
    assert serving.make_request("space", {}) == "here"
    assert control_worker("ping", serving.place) == {"pid": os.getpid(), "version": __version__}


def test_a_job_that_fails_fails_alone(serving):
    """A refusal and a bug are answers like others; the next caller is served. No word of a
    memory reaches the log."""
    reasons: list[str] = []

    assert serving.make_request("refuse", {}, note=reasons.append) is None
    assert serving.make_request("fail", {}, note=reasons.append) is None
    assert serving.make_request("nonsense", {}, note=reasons.append) is None
    assert serving.make_request("echo", {}) == {}

    assert "not today" in reasons[0]
    assert "ZeroDivisionError" in reasons[1]
    assert "unknown kind of job 'nonsense'" in reasons[2]
    log = serving.place.log.read_text()
    assert "ZeroDivisionError at test_worker_server" in log
    assert "the words of a memory" not in log
    jobs = control_worker("status", serving.place)["jobs"]
    assert (jobs["done"], jobs["failed"], jobs["active"]) == (1, 2, 0)


def test_an_answer_that_cannot_be_told_is_none(serving):
    """Too large, or nothing that JSON knows: the caller does it itself."""
    assert serving.make_request("large", {}) is None
    assert serving.make_request("odd", {}) is None
    assert serving.make_request("echo", {}) == {}


@each_row(
    "garbage",
    [b"", b"\x00", b"GET / HTTP/1.1\r\n\r\n", struct.pack(">I", 5) + b"\xff\xff\xff\xff\xff",
     struct.pack(">I", 2**31), struct.pack(">I", 3) + b"[1]", bytes(range(255, 0, -1)) * 16],
)  # fmt: skip
def test_garbage_disturbs_nobody(serving, garbage):
    """Whoever sends it is hung up on."""
    with connect(serving.place, time.monotonic() + 60) as sock:
        sock.settimeout(10)
        with suppress(OSError):  # hung up on, with words not heard
            sock.sendall(garbage)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(1):
                pytest.fail("it was answered")

    assert serving.make_request("echo", {"still": "here"}) == {"still": "here"}


@each_row(
    "request_", [{}, {"settings": 7, "payload": {}}, {"settings": {}, "payload": []},
                 {"settings": {}, "payload": {}}, {"settings": {"values": {}}, "payload": {}}],
)  # fmt: skip
def test_a_request_without_sense_is_told_so(serving, request_):
    """Settings are checked before anything is opened."""
    said = serving.say(hello=own_handshake(), kind="echo", **request_)

    assert "answer" not in said
    assert said["message"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def _is_no_hello(value):
    """Whether it is not of another version, which ends the worker."""
    return not isinstance(value, list) or len(value) != len(own_handshake())


def test_whatever_is_asked_there_is_an_answer(desk):
    """Any object at all: an answer or a reason, and the worker is still there."""
    serving = Serving(desk, desk.place)
    own, sound = own_handshake(), settings_to_json(desk.settings)

    @given(
        kind=st.sampled_from([*JOBS, "ping", "status", "wake"]).filter(
            lambda kind: kind not in ("hold", "large", "odd")
        ) | _JSON.filter(lambda value: value != "stop"),
        hello=st.just(own) | _JSON.filter(_is_no_hello),
        settings=st.just(sound) | _JSON,
        payload=_JSON,
        environment=st.just("") | _JSON,
    )  # fmt: skip
    def law(**request):
        said = serving.say(**request)
        assert ("answer" in said) or (said["error"] and said["message"])

    law()
    assert serving.make_request("echo", {}) == {}
    serving.end()


def test_who_does_not_say_who_it_is_is_not_answered(serving):
    """A message of another kind is no reason to end, either."""
    for hello in (None, 7, [], {"protocol": 1}):
        assert serving.say(kind="ping", hello=hello)["error"] == "hello"

    assert serving.make_request("echo", {}) == {}


def test_a_silent_caller_keeps_nobody_waiting(serving):
    """Others are answered while somebody says nothing."""
    with connect(serving.place, time.monotonic() + 60):
        assert serving.make_request("echo", {}) == {}


def test_too_many_at_once_are_sent_away(serving):
    """They do it themselves; once the others have gone, there is room again."""
    deadline = time.monotonic() + 60
    with ExitStack() as callers:
        for _ in range(64):
            callers.enter_context(connect(serving.place, deadline))
        assert serving.make_request("echo", {}, deadline_s=3) is None

    until(lambda: serving.make_request("echo", {}) == {})


def test_a_busy_store_is_told_from_a_failure(serving):
    """What was handed over is then tried again, however often."""
    said = serving.say(hello=own_handshake(), kind="busy", environment="",
                       settings=settings_to_json(serving.desk.settings), payload={})  # fmt: skip

    assert said["error"] == "busy"


def test_another_environment_is_not_answered_for(serving):
    """With another key, models would say something else, at another's cost."""
    request = {"kind": "echo", "settings": settings_to_json(serving.desk.settings), "payload": {}}

    said = serving.say(hello=own_handshake(), environment="other", **request)

    assert "another environment" in said["message"]
    assert serving.say(hello=own_handshake(), environment="", **request) == {"answer": {}}


def test_a_class_that_a_profile_names_is_imported_by_the_process_that_asks(serving):
    """It may have changed since a worker imported it, or be another in the caller's folders."""
    assert serving.make_request("import", {"use": "tiny_bert:make_tiny_bert"}) is None
    assert serving.make_request("import", {"use": "bethink.model:Item"}) == "Item"


def test_what_was_handed_over_is_not_done_in_another_environment(serving, monkeypatch):
    """Its texts would go to another's server: it waits for a worker of its own, uncounted,
    and who hands it over hears so."""
    settings = replace(serving.desk.settings, embedder="openai:small")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/theirs")
    theirs = environment_hash(settings)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/ours")
    spool, told = Spool(serving.place.spool), settings_to_json(settings)

    spool.put(QueuedJob("capture", told, {}, theirs))
    said = serving.say(hello=own_handshake(), kind="wake", settings=told, environment=theirs)
    spool.put(QueuedJob("capture", told, {"later": 1}, environment_hash(settings)))
    assert serving.say(hello=own_handshake(), kind="wake") == {"answer": {}}

    assert said == {"error": OTHER_ENVIRONMENT}
    # A file is named otherwise while the worker looks at it.
    until(lambda: control_worker("status", serving.place)["jobs"]["done"] == 1)
    until(lambda: len(spool.waiting()) == 1)
    (name,) = spool.waiting()
    kept = json.loads((spool.folder / name).read_bytes())
    assert (kept["environment"], kept["tries"]) == (theirs, 0)


@pytest.mark.parametrize(
    "change",
    [(0, 99), (1, "0.0.1"), (2, "elsewhere"), (1, None)],
)
def test_a_worker_of_another_version_goes(desk, change):
    """It says so, opens the door for its successor and ends."""
    serving = Serving(desk, desk.place)

    hello = own_handshake()
    hello[change[0]] = change[1]

    said = serving.say(hello=hello, kind="echo")

    assert said["error"] == "version"
    serving.thread.join(60)
    assert not serving.thread.is_alive()
    assert not serving.place.socket_path.exists()


def test_whoever_calls_can_stop_it(desk):
    """A version that knows nothing else of it, too; what is under way is finished first."""
    serving = Serving(desk, desk.place)
    held.clear()
    answers: list[object] = []
    caller = Thread(target=lambda: answers.append(serving.make_request("hold", {})))
    caller.start()
    until(lambda: control_worker("status", serving.place)["jobs"]["active"])

    assert serving.say(kind="stop")["answer"] == {"pid": os.getpid()}
    assert serving.make_request("echo", {}) is None
    held.set()

    caller.join(60)
    serving.thread.join(60)
    assert answers == [{"held": True}]
    assert not serving.thread.is_alive()


@pytest.mark.parametrize("gone", ["door", "folder"])
def test_a_worker_nobody_can_find_ends(desk, gone):
    """Its socket or its folder was removed: it would wait for ever."""
    serving = Serving(desk, desk.place)
    if gone == "door":
        serving.place.socket_path.unlink()
    else:
        desk.place.folder.rename(desk.runtime / "elsewhere")

    serving.thread.join(60)

    assert not serving.thread.is_alive()


def test_an_idle_worker_ends(desk):
    """After as long as was said; being asked for its status is no work."""
    serving = Serving(desk, desk.place, idle_s=0.3)

    serving.thread.join(60)

    assert not serving.thread.is_alive()
    assert "ending: idle" in serving.place.log.read_text()


@pytest.mark.parametrize("wanted", ["maintain", "sync", ""])
def test_maintenance_is_done_unasked_only_where_it_is_wanted(desk, wanted, monkeypatch):
    """While nothing else is; and it does not keep the worker alive."""
    tidied.clear()
    # Long enough for a busy machine to find the moment between quiet and idle.
    idle_s = 3 if wanted else 1
    monkeypatch.setitem(JOBS, "sync", JOBS["maintain"])
    chosen = {f"{wanted}_in_background": True} if wanted else {}
    desk.settings = replace(desk.settings, worker_idle=idle_s, **chosen)
    serving = Serving(desk, desk.place)
    assert serving.make_request("echo", {}) == {}

    serving.thread.join(60)

    assert not serving.thread.is_alive()
    assert bool(tidied) is bool(wanted)


def test_callers_need_not_wait_for_maintenance(desk, monkeypatch):
    """However many memories are open: it takes one thread."""
    held.clear()
    monkeypatch.setitem(JOBS, "maintain", _hold)
    tidy = replace(desk.settings, worker_idle=3, maintain_in_background=True)
    serving = Serving(desk, desk.place)
    try:
        for k in range(1, 5):
            assert serving.make_request("echo", {}, settings=replace(tidy, k=k)) == {}
        until(lambda: control_worker("status", serving.place)["jobs"]["active"])

        assert serving.make_request("echo", {}, settings=tidy, deadline_s=3) == {}
    finally:
        held.set()
        serving.end()


def test_a_space_that_was_removed_is_let_go_of(serving):
    """And one made anew in its place is the one that is asked."""
    assert serving.make_request("space", {}) == "here"
    (path,) = control_worker("status", serving.place)["spaces"]

    for ending in ("", "-wal", "-shm"):
        Path(path + ending).unlink(missing_ok=True)

    until(lambda: control_worker("status", serving.place)["spaces"] == [])
    assert serving.make_request("space", {}) == "here"
    assert Path(path).exists()


def test_too_many_callers_are_one_line_of_the_log(serving):
    """And who comes when they have left is answered."""
    deadline = time.monotonic() + 60
    with ExitStack() as kept:
        for _ in range(_MAX_CALLERS + 40):
            if serving.place.unix:
                with suppress(BlockingIOError):  # the queue of the system is full
                    kept.enter_context(connect(serving.place, deadline))
                time.sleep(0.002)
            else:  # `connect` would wait for the greeting
                port, _secret = _read_port_file(serving.place.socket_path)
                kept.enter_context(socket.create_connection(("127.0.0.1", port), 60))
        log = serving.place.log
        while not log.exists() or "callers at once" not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    while control_worker("ping", serving.place) is None:
        assert time.monotonic() < deadline

    lines = log.read_text().splitlines()
    assert len(lines) <= 4, lines  # listening, too many callers, one that was lost


def test_no_descriptor_for_a_caller_is_one_line_of_the_log(desk):
    serving = Serving(desk, desk.place)
    accepted = serving.server._listener.sock

    class Exhausted:
        def __init__(self) -> None:
            self.tries = 0

        def fileno(self) -> int:
            return accepted.fileno()

        def accept(self) -> tuple[socket.socket, object]:
            self.tries += 1
            if self.tries <= 4:
                raise OSError(errno.EMFILE, "Too many open files")
            return accepted.accept()

        def close(self) -> None:
            accepted.close()

    serving.server._listener = serving.server._listener._replace(sock=Exhausted())
    assert control_worker("ping", serving.place, deadline_s=60)
    assert control_worker("ping", serving.place, deadline_s=60)
    serving.end()

    assert serving.place.log.read_text().count("Too many open files") == 1


def test_the_log_is_bounded_and_private(tmp_path):
    """The one before is kept once; a line break in what is told makes no second line."""
    log = LogFile(tmp_path / "worker.log")
    for _ in range(3 * MAX_LOG_BYTES // 900):
        log("x" * 900 + "\nforged")

    sizes = {path.name: path.stat() for path in tmp_path.iterdir()}

    assert set(sizes) == {"worker.log", "worker.log.1"}
    assert all(one.st_size <= MAX_LOG_BYTES and one.st_mode & 0o077 == 0 for one in sizes.values())
    assert not any(
        line.startswith("forged") for line in (tmp_path / "worker.log").read_text().splitlines()
    )


def test_a_port_is_of_use_to_nobody_without_the_secret(desk):
    """A caller that only knows the port is not answered; a port that was taken over by
    another program gets no question."""
    serving = Serving(desk, desk.place._replace(unix=False))
    door = serving.place.socket_path
    told = door.read_text()
    wrong = told[:-4] + ("00" if told[-4:-2] != "00" else "11") + told[-2:]
    door.write_text(wrong)

    with pytest.raises(OSError, match=r"closed|reset|port"):
        connect(serving.place, time.monotonic() + 60)

    serving.server.request_stop("over")
    serving.thread.join(60)
    with socket.create_server(("127.0.0.1", 0)) as thief:
        port = thief.getsockname()[1]
        door.write_text(f'{{"port": {port}, "secret": "{"ab" * 32}"}}')
        heard: list[bytes] = []

        def listen_in() -> None:
            caller, _ = thief.accept()
            with caller:
                caller.sendall(b"n" * 16)
                heard.append(caller.recv(4096))
                caller.sendall(b"p" * 32)

        Thread(target=listen_in, daemon=True).start()
        assert serving.make_request("echo", {"private": "words"}) is None
        until(lambda: heard)
    assert b"private" not in heard[0]


@each_row("body", ["", "{}", "[]", '{"port": 0, "secret": "00"}', "x" * 9000,
                                  '{"port": "1", "secret": 2}'])  # fmt: skip
def test_a_door_that_says_nothing_is_none(desk, body):
    """Then the caller does without."""
    place = desk.place._replace(unix=False)
    make_private(place.folder)
    place.socket_path.write_text(body)

    given = {"settings": desk.settings, "place": place, "start": False}
    assert request_worker("echo", {}, **given) is None
