"""Queued jobs, one file each, durable before the caller is acknowledged.

A job is ``NAME.json``, and ``NAME.work`` once a worker has taken it, so that the same
job queued meanwhile is not lost. Jobs left behind by a killed worker are run by the
next one, so every queued job must be idempotent.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from threading import Event, Thread
from typing import Literal

from bethink.core.atomic_write import atomic_replace, fsync_folder
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.worker.files import acquire_lock, make_private
from bethink.worker.transport import MAX_REQUEST_BYTES, FrameError, parse_message

QUEUEABLE_JOBS = ("capture", "edits", "maintain", "warm")  # idempotent jobs
MAX_QUEUED = 1000  # jobs that may wait
MAX_ATTEMPTS = 8
_MAX_FAILED_KEPT = 200
_TEMP_FILE_MAX_AGE_S = 86_400.0
_STALLED_AFTER_S = 20.0


class QueuedJob(NamedTuple):
    """A queued job: its kind, settings, payload, environment hash and attempts."""

    kind: str
    settings: Json
    payload: Json
    environment: str = ""
    tries: int = 0


class SpoolFull(OSError):
    """Too many jobs are queued; the worker must be stuck."""


class Spool:
    """The queued jobs of one user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failed_folder = folder / "failed"

    def put(self, job: QueuedJob) -> None:
        """Store a job durably; one that waits already is not stored twice. Raises OSError."""
        if job.kind not in QUEUEABLE_JOBS:
            raise ValueError(f"{job.kind!r} cannot be queued; only {', '.join(QUEUEABLE_JOBS)}")
        make_private(self.folder)
        path = self.folder / f"{_job_name(job)}.json"
        if path.exists():
            return  # keep its age; the job will cover what is new as well
        if len(self.waiting()) >= MAX_QUEUED:
            raise SpoolFull(f"{MAX_QUEUED} jobs are already queued")
        self._write(path, job)

    def waiting(self) -> list[str]:
        """Names of queued and started jobs, oldest first."""
        return [path.name for path in self._files()]

    def is_stalled(self) -> bool:
        """Whether a job has waited so long that no worker can be running."""
        oldest = next((path for path in self._files() if path.suffix == ".json"), None)
        try:
            return oldest is not None and time.time() - oldest.stat().st_mtime > _STALLED_AFTER_S
        except FileNotFoundError:
            return False  # it has just been taken

    def failed(self) -> list[str]:
        """Names of the jobs that were given up."""
        return [path.name for path in _files_by_age(self.failed_folder)]

    def take(self, name: str) -> QueuedJob | None:
        """Take a job, counting the attempt first; None where it is gone, unreadable or given up."""
        path = self.folder / name
        begun = path.with_suffix(".work")
        try:
            if path.suffix == ".json":
                if begun.exists():
                    return None  # left by a killed worker; it runs first
                path.rename(begun)
            job = _read_job(begun)
        except FileNotFoundError:
            return None
        except FrameError:
            self._move_to_failed(begun)
            return None
        if job.tries >= MAX_ATTEMPTS:
            self._move_to_failed(begun)
            return None
        attempt = job._replace(tries=job.tries + 1)
        self._write(begun, attempt)
        return attempt

    def done(self, name: str) -> None:
        """Remove a completed job, and an earlier failure of the same job."""
        begun = (self.folder / name).with_suffix(".work")
        (self.failed_folder / f"{begun.stem}.json").unlink(missing_ok=True)
        begun.unlink(missing_ok=True)

    def put_back(self, name: str, job: QueuedJob) -> None:
        """Return a job without counting the attempt: the failure was not its own."""
        self._write((self.folder / name).with_suffix(".work"), job._replace(tries=job.tries - 1))

    def give_up(self, name: str) -> None:
        """Move a job to the folder of failed ones, where people can inspect it."""
        self._move_to_failed((self.folder / name).with_suffix(".work"))

    def sweep(self) -> None:
        """Remove temporary files of killed writers after a day."""
        now = time.time()
        for path in self.folder.glob(".*.part"):
            if now - path.stat().st_mtime > _TEMP_FILE_MAX_AGE_S:
                path.unlink(missing_ok=True)

    def _files(self) -> Iterator[Path]:
        return (path for path in _files_by_age(self.folder) if path.suffix in (".json", ".work"))

    def _move_to_failed(self, path: Path) -> None:
        make_private(self.failed_folder)
        path.replace(self.failed_folder / f"{path.stem}.json")
        for old in _files_by_age(self.failed_folder)[:-_MAX_FAILED_KEPT]:
            old.unlink(missing_ok=True)

    def _write(self, path: Path, job: QueuedJob) -> None:
        body = json.dumps(job._asdict()).encode()
        if len(body) > MAX_REQUEST_BYTES:
            raise OSError(f"a job of {len(body):,} bytes; the limit is {MAX_REQUEST_BYTES:,}")
        atomic_replace(path, body, temp_affixes=(f".{path.name}.", ".part"))
        fsync_folder(path.parent)


def _job_name(job: QueuedJob) -> str:
    """Name of a job; equal jobs have equal names."""
    content = json.dumps(job._replace(tries=0), sort_keys=True)
    return f"{job.kind}-{hashlib.sha256(content.encode()).hexdigest()[:24]}"


def _read_job(path: Path) -> QueuedJob:
    with path.open("rb") as file:
        fields = parse_message(file.read(MAX_REQUEST_BYTES + 1))
    kinds = (str, dict, dict, str, int)
    types = dict(zip(QueuedJob._fields, kinds, strict=True))
    if set(fields) != set(types) or not all(type(fields[name]) is types[name] for name in types):
        raise FrameError(f"{path.name} is not a valid job")
    return QueuedJob(**fields)


def _files_by_age(folder: Path) -> list[Path]:
    """The files of a folder, oldest first; none where there is no folder."""
    found: list[tuple[float, Path]] = []
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return []
    with entries:
        for entry in entries:
            try:
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith("."):
                    found.append((entry.stat().st_mtime, Path(entry.path)))
            except FileNotFoundError:
                continue  # removed meanwhile
    return [path for _, path in sorted(found)]


_SPOOL_POLL_S = 5.0
_RETRY_BACKOFF_S = 10.0  # before the second attempt; doubles with each one


# Outcome of an attempt. "busy" and "not here" do not count as attempts.
JobOutcome = Literal["done", "failed", "busy", "not here"]


class SpoolWorker:
    """A thread that takes jobs from the spool; ``perform`` runs one of them."""

    def __init__(
        self, spool: Spool, perform: Callable[[QueuedJob], JobOutcome], log: Callable[[str], None]
    ) -> None:
        self._spool = spool
        self._perform = perform
        self._log = log
        self._wake_event = Event()
        self._stop_event = Event()
        self._skip_event = Event()
        self._not_before: dict[str, float] = {}
        self._thread = Thread(target=self._run, name="bethink-spool", daemon=True)
        self.busy = True  # until the first look at the spool

    def begin(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Signal that a job was queued."""
        self.busy = True
        self._wake_event.set()

    def end(self, wait_s: float, *, skip_queued: bool) -> None:
        """Stop, unless ``skip_queued`` after the due jobs; wait ``wait_s`` for the present one."""
        if skip_queued:
            self._skip_event.set()
        self._stop_event.set()
        self._wake_event.set()
        self._thread.join(wait_s)

    def run_due_jobs(self) -> None:
        """Run every due job, unless another worker holds the spool's lock."""
        make_private(self._spool.folder)
        handle = acquire_lock(self._spool.folder / ".lock")
        if handle is None:
            return
        try:
            self._spool.sweep()
            while not self._skip_event.is_set() and (due := self._due_jobs()):
                for name in due:
                    if not self._skip_event.is_set():
                        self._run_job(name)
        finally:
            os.close(handle)

    def _due_jobs(self) -> list[str]:
        now = time.monotonic()
        return [name for name in self._spool.waiting() if self._not_before.get(name, 0.0) <= now]

    def _run_job(self, name: str) -> None:
        job = self._spool.take(name)
        if job is None:
            # Not now: an earlier run of it comes first, or it could not be read.
            self._not_before[name] = time.monotonic() + _SPOOL_POLL_S
            return
        begun = f"{name.removesuffix('.json').removesuffix('.work')}.work"
        outcome = self._perform(job)
        if outcome == "done":
            self._spool.done(name)
            self._not_before.pop(begun, None)
        elif outcome == "failed" and job.tries >= MAX_ATTEMPTS:
            self._spool.give_up(name)
            self._log(f"gave up after {job.tries} attempts: {job.kind}")
        else:
            if outcome != "failed":
                self._spool.put_back(name, job)
            wait_s = inf if outcome == "not here" else _RETRY_BACKOFF_S * 2 ** (job.tries - 1)
            self._not_before[begun] = time.monotonic() + wait_s

    def _run(self) -> None:
        last = False
        while not last:
            last = self._stop_event.is_set()
            self._wake_event.clear()
            self.busy = True
            try:
                self.run_due_jobs()
            except OSError as error:
                self._log(f"cannot process the spool: {error}")
            self.busy = self._wake_event.is_set()
            if not last and not self._stop_event.is_set():
                self._wake_event.wait(_SPOOL_POLL_S)
