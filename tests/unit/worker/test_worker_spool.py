"""What was handed over is kept until it is done."""

from __future__ import annotations

import os
import stat
import time

import pytest

from bethink.worker.spool import MAX_ATTEMPTS, MAX_QUEUED, QueuedJob, Spool, SpoolFull, SpoolWorker
from bethink.worker.transport import MAX_REQUEST_BYTES
from rows import each_row

WORK = QueuedJob("capture", {}, {"transcript": "a"})


@pytest.fixture
def spool(tmp_path):
    return Spool(tmp_path / "state" / "spool")


def drained(spool, perform):
    """One look at the spool by a worker."""
    drain = SpoolWorker(spool, perform, lambda told: None)
    drain.run_due_jobs()
    return drain


def test_a_hand_over_is_done_once_and_gone(spool):
    """By the first worker that looks; the second finds nothing."""
    seen = []
    spool.put(WORK)

    drained(spool, lambda handed: seen.append(handed) or "done")
    drained(spool, lambda handed: seen.append(handed) or "done")

    assert [one.payload for one in seen] == [WORK.payload]
    assert spool.waiting() == spool.failed() == []


def test_the_same_handed_over_twice_is_one(spool):
    """As long as nobody has begun with it; other work is other work."""
    spool.put(WORK)
    spool.put(WORK)
    spool.put(WORK._replace(payload={"transcript": "b"}))

    assert len(spool.waiting()) == 2


def test_what_nobody_begins_with_is_noticed(spool):
    """Since when it waits is not forgotten when it is handed over once more; what was begun
    is somebody's."""
    assert not spool.is_stalled()
    spool.put(WORK)
    assert not spool.is_stalled()
    (name,) = spool.waiting()
    os.utime(spool.folder / name, (1, 1))
    spool.put(WORK)
    assert spool.is_stalled()

    spool.take(name)

    assert not spool.is_stalled()


def test_what_is_not_for_this_worker_waits_for_another(spool):
    """It is asked once and not counted; the next worker is asked again."""
    spool.put(WORK)
    first = []
    drain = drained(spool, lambda handed: first.append(handed) or "not here")
    drain.run_due_jobs()
    assert len(first) == 1

    second = []
    drained(spool, lambda handed: second.append(handed) or "done")

    assert [one.tries for one in second] == [1]


def test_what_is_handed_over_during_the_work_is_done_after_it(spool):
    """The transcript has grown meanwhile: the first look may have missed it."""
    times = []

    def perform(handed):
        times.append(handed)
        if len(times) == 1:
            spool.put(WORK)
        return "done"

    spool.put(WORK)
    drained(spool, perform)

    assert len(times) == 2
    assert spool.waiting() == []


def test_work_that_was_begun_is_taken_up_by_the_next(spool):
    """A worker that is killed in the middle leaves it as it was, but counted."""
    spool.put(WORK)
    (name,) = spool.waiting()
    assert spool.take(name).tries == 1

    seen = []
    drained(spool, lambda handed: seen.append(handed) or "done")

    assert [one.tries for one in seen] == [2]
    assert spool.waiting() == []


def test_work_that_kills_its_worker_is_given_up(spool):
    """Tries are counted before they are made, so a deadly one ends, too."""
    spool.put(WORK)
    for _ in range(MAX_ATTEMPTS):
        assert spool.take(spool.waiting()[0]) is not None

    drained(spool, lambda handed: pytest.fail("tried once too often"))

    assert spool.waiting() == []
    assert len(spool.failed()) == 1

    spool.put(WORK)
    drained(spool, lambda handed: "done")
    assert spool.failed() == []  # made good


def test_work_that_fails_waits_before_it_is_tried_again(spool):
    """Not in a tight loop; the next worker tries at once."""
    tries = []
    spool.put(WORK)

    drain = drained(spool, lambda handed: tries.append(handed.tries) or "failed")
    drain.run_due_jobs()

    assert tries == [1]
    drained(spool, lambda handed: tries.append(handed.tries) or "failed")
    assert tries == [1, 2]


def test_a_busy_store_is_not_the_works_fault(spool):
    """However often it was busy, nothing is given up."""
    spool.put(WORK)
    for _ in range(3 * MAX_ATTEMPTS):
        drained(spool, lambda handed: "busy")

    seen = []
    drained(spool, lambda handed: seen.append(handed.tries) or "done")

    assert seen == [1]
    assert spool.waiting() == spool.failed() == []


def test_only_work_that_may_be_done_again_is_taken(spool):
    """A mistake of the caller's, found where it is made."""
    with pytest.raises(ValueError, match="cannot be queued"):
        spool.put(QueuedJob("recall", {}, {}))


def test_hand_overs_are_for_the_owner_alone(spool):
    """They name folders and settings."""
    spool.put(WORK)
    (name,) = spool.waiting()

    assert stat.S_IMODE((spool.folder / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(spool.folder.stat().st_mode) == 0o700


@each_row("body", [b"", b"nonsense", b"[]", b"{}", b'{"kind": 1}', b"\xff" * 99])
def test_a_broken_file_is_put_aside(spool, body):
    """It stops nobody, and people can look at it."""
    spool.put(WORK)
    (spool.folder / "capture-broken.json").write_bytes(body)
    seen = []

    drained(spool, lambda handed: seen.append(handed) or "done")

    assert len(seen) == 1
    assert spool.failed() == ["capture-broken.json"]


def test_a_hand_over_has_a_limit_and_so_has_the_spool(spool):
    """Then whoever hands over does it itself."""
    with pytest.raises(OSError, match="limit"):
        spool.put(WORK._replace(payload={"transcript": "x" * MAX_REQUEST_BYTES}))
    for n in range(MAX_QUEUED):
        (spool.folder / f"capture-{n}.json").touch()
    with pytest.raises(SpoolFull):
        spool.put(WORK)


def test_what_killed_writers_left_is_swept_away_a_day_later(spool):
    """And nothing that is being written now."""
    spool.put(WORK)
    old, new = spool.folder / ".a.json.1-1.part", spool.folder / ".b.json.1-1.part"
    old.touch()
    new.touch()
    os.utime(old, (time.time() - 90_000,) * 2)

    spool.sweep()

    assert not old.exists()
    assert new.exists()


def test_two_workers_do_not_do_the_same(spool):
    """While one is at it, the other leaves it alone."""
    seen = []

    def perform(handed):
        seen.append(handed)
        drained(spool, lambda again: seen.append(again) or "done")
        return "done"

    spool.put(WORK)
    drained(spool, perform)

    assert len(seen) == 1
