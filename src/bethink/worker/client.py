"""Client of the worker: start it, query it, queue jobs, stop it.

Every failure falls back to working without the worker. Imports nothing heavy: a call
that the worker answers must not pay for what it saves. Settings travel as the caller resolved
them: the environment, the working directory and the project are the caller's.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from bethink.config.settings import (
    SETTINGS,
    SETTINGS_BY_NAME,
    ForeignConfig,
    Origin,
    Setting,
    Settings,
    SettingValue,
    refuse_in_project,
    validate_value,
)
from bethink.config.spaces import data_dir, resolve_space
from bethink.core.json_values import Json
from bethink.errors import BadSetting, BethinkError
from bethink.models import Provider, embedder_provider
from bethink.models.rerank import reranker_provider
from bethink.worker import environment_hash
from bethink.worker.files import (
    WorkerPaths,
    is_locked,
    lock_age_s,
    lock_holder,
    require_private,
    worker_paths,
)
from bethink.worker.transport import (
    MAX_REPLY_BYTES,
    MAX_REQUEST_BYTES,
    connect,
    is_readable,
    own_handshake,
    receive_message,
    send_message,
)

if TYPE_CHECKING:
    from bethink.ports import Embedder, Reranker


def settings_to_json(settings: Settings) -> Json:
    """Encode the caller's effective settings, fully resolved."""
    ref = resolve_space(None, settings)
    resolved = settings.changed(
        space=ref.name,
        data_dir=_absolute(data_dir(settings)),
        notes_dir=_absolute(settings.notes_dir),
        embedder=_resolve_model_folder(settings.embedder, embedder_provider(settings.embedder)),
        reranker=resolve_reranker_folder(settings.reranker),
    )
    return {
        "values": {
            setting.name: _path_to_str(getattr(resolved, setting.name)) for setting in SETTINGS
        },
        "origins": {name: list(origin) for name, origin in settings.origins.items()},
        "project": _path_to_str(_absolute(settings.project)),
        "config": _path_to_str(_absolute(settings.config)),
        "theirs": {
            "variables": dict(settings.theirs.variables),
            "home": _path_to_str(settings.theirs.home),
            "project": _path_to_str(settings.theirs.project),
        },
    }


def resolve_reranker_folder(name: str) -> str:
    """Return the reranker's name with an absolute folder."""
    return _resolve_model_folder(name, reranker_provider(name))


def settings_from_json(data: Any) -> Settings:
    """Decode a caller's settings, checked like a file; raise BadSetting if they are invalid.

    Missing settings take their defaults: a queued job may be older than a setting.
    """
    try:
        values, theirs = data["values"], data["theirs"]
        origins = {name: Origin(*origin) for name, origin in data["origins"].items()}
        for name, origin in origins.items():
            if origin.kind == "project file" and name in values:
                refuse_in_project(name, values[name], origin.where)
        settings: Json = {
            name: _decode_setting(SETTINGS_BY_NAME[name], value) for name, value in values.items()
        }
        home, project = _decode_path(theirs["home"]), _decode_path(theirs["project"])
        return Settings(
            **settings,
            project=_decode_path(data["project"]),
            config=_decode_path(data["config"]),
            theirs=ForeignConfig(dict(theirs["variables"]), home, project),
            origins=origins,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadSetting("the caller's settings are invalid") from error


def _resolve_model_folder(
    name: str, provider: Provider[Embedder] | Provider[Reranker] | None
) -> str:
    """Make the folder in a model's name absolute, as seen by the caller."""
    prefix, _, argument = name.partition(":")
    if provider is None or not argument or "FOLDER" not in provider.argument_hint:
        return name
    folder = Path(argument).expanduser()
    return f"{prefix}:{folder.absolute()}" if folder.is_dir() else name


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else Path(os.path.abspath(path))  # noqa: PTH100 - keeps links


def _path_to_str(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def _decode_setting(setting: Setting, value: object) -> SettingValue:
    if value is None and setting.default is None:
        return None
    return validate_value(setting, value, f"the caller's {setting.name}")


def _decode_path(value: str | None) -> Path | None:
    path = None if value is None else Path(value)
    if path is not None and not path.is_absolute():
        raise ValueError(f"{path} is relative, and would be another one here")
    return path


# Exit codes of the starting process: ready means that its worker or another one listens.
EXIT_READY = 0
EXIT_NOT_STARTED = 3
_START_POLL_S = 0.004


def start_worker(paths: WorkerPaths, idle_s: int, *, wait_s: float) -> bool:
    """Start a worker unless there is one; return whether it is listening.

    With ``wait_s`` 0 it does not wait. Two concurrent starts give one worker: the kernel
    grants the lock to one of them.
    """
    if not sys.executable:
        return False
    command = [
        *(sys.executable, "-P", "-m", "bethink.worker"),
        *(str(paths.folder), str(paths.state), paths.key, str(idle_s)),
    ]
    try:
        return _spawn(command, paths, wait_s)
    except OSError:
        return False  # not allowed, or no resources for a process: work without it


def _spawn(command: list[str], place: WorkerPaths, wait_s: float) -> bool:
    """Start the process, which opens the socket, forks the worker and exits.

    Once it has exited, a worker is listening, and it is not our child. Without a fork, on
    Windows, it is the worker itself, and its socket shows that it listens.
    """
    import subprocess  # start-up time: most callers find a worker, or need none

    flags = 0
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
    null = subprocess.DEVNULL
    started = subprocess.Popen(  # noqa: S603 - our own program, by its absolute path
        command, stdin=null, stdout=null, stderr=null, creationflags=flags
    )
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        if started.poll() is not None:
            return started.returncode == EXIT_READY
        if sys.platform == "win32" and place.socket_path.exists():
            break
        time.sleep(_START_POLL_S)
    Thread(target=started.wait, name="bethink-starting", daemon=True).start()
    return sys.platform == "win32" and place.socket_path.exists()


REPLY_TIMEOUT_S = 30.0
START_TIMEOUT_S = 12.0
_WAKE_TIMEOUT_S = 0.25
_PING_AFTER_S = 0.5  # without an answer
_PING_TIMEOUT_S = 2.0  # even a busy worker answers a ping at once
NoteCallback = Callable[[str], None]

# Errors that a running worker may return instead of an answer.
OTHER_VERSION = "version"
OTHER_ENVIRONMENT = "environment"


def _ignore_note(message: str) -> None:
    """Ignore the note; callers usually need not know why the worker was not used."""


def request_worker(
    kind: str,
    payload: Json,
    *,
    settings: Settings,
    deadline_s: float = REPLY_TIMEOUT_S,
    start: bool = True,
    note: NoteCallback = _ignore_note,
    place: WorkerPaths | None = None,
) -> object:
    """Send a request and return the worker's answer, or None: then do the work here.

    For reads only: the work may have been done although no answer came. Without ``start``
    only a running worker is used. ``note`` receives the reason for None.
    """
    if settings.worker == "off":
        return None
    deadline = time.monotonic() + deadline_s
    place = place or worker_paths()
    try:
        request = {
            "kind": kind,
            "settings": settings_to_json(settings),
            "environment": environment_hash(settings),
            "payload": payload,
        }
        reply = _exchange(request, place, deadline, watchful=True)
        if start and (reply is None or reply.get("error") == OTHER_VERSION):
            timeout_s = min(START_TIMEOUT_S, deadline - time.monotonic())
            if start_worker(place, settings.worker_idle, wait_s=timeout_s):
                reply = _exchange(request, place, deadline)
    except (OSError, BethinkError) as error:
        reason = f"could not reach the worker: {error}"
        if isinstance(error, TimeoutError):
            reason = f"the worker did not answer within {deadline_s:g} seconds"
        if isinstance(error, _Hung):
            _end_process(place)
            reason = "the worker hung and was stopped"
        note(reason)
        return None
    if reply is None:
        note("could not start a worker" if start else "no worker is running")
        return None
    if "answer" not in reply:
        note(f"the worker refused: {reply.get('message', reply.get('error', 'no reason'))}")
        return None
    return reply["answer"]


def enqueue_job(
    kind: str,
    payload: Json,
    *,
    settings: Settings,
    note: NoteCallback = _ignore_note,
    place: WorkerPaths | None = None,
) -> bool:
    """Queue a job for the worker; return True once it is durable on disk.

    The job will run at least once, perhaps more often, so it must be idempotent. False
    where it is not stored, or where no worker seems to run the queue: then do it here.
    Does not wait for the worker; if there is none, one is started.
    """
    if settings.worker == "off":
        return False
    from bethink.worker.spool import QueuedJob, Spool  # start-up time: questions are not queued

    place = place or worker_paths()
    spool = Spool(place.spool)
    try:
        job = QueuedJob(kind, settings_to_json(settings), payload, environment_hash(settings))
        spool.put(job)
    except (OSError, BethinkError) as error:
        note(f"could not queue the job: {error}")
        return False
    reply = _wake_worker(job.settings, job.environment, place)
    if "answer" in reply:
        return True
    if reply.get("error") == OTHER_ENVIRONMENT:
        note("the worker runs in another environment")
        return False
    start_worker(place, settings.worker_idle, wait_s=0)
    if spool.is_stalled():
        note("no worker processes the queue")
        return False
    return True


def _wake_worker(settings: Json, environment: str, place: WorkerPaths) -> Json:
    """Notify the worker of a queued job; empty where there is none."""
    request = {"kind": "wake", "settings": settings, "environment": environment}
    try:
        return _exchange(request, place, time.monotonic() + _WAKE_TIMEOUT_S) or {}
    except OSError:
        return {}


def control_worker(
    kind: str, place: WorkerPaths | None = None, *, deadline_s: float = 2.0
) -> Json | None:
    """Send ``ping``, ``status`` or ``stop`` to a running worker; None if there is none."""
    try:
        reply = _exchange({"kind": kind}, place or worker_paths(), time.monotonic() + deadline_s)
    except OSError:
        return None
    answer = None if reply is None else reply.get("answer")
    return answer if isinstance(answer, dict) else None


def ensure_worker(settings: Settings, place: WorkerPaths | None = None) -> Json | None:
    """Start a worker unless there is one; return its status, None if none starts."""
    place = place or worker_paths()
    found = control_worker("status", place)
    if found is None and start_worker(place, settings.worker_idle, wait_s=START_TIMEOUT_S):
        # It listens, but still has to load what it needs to answer.
        found = control_worker("status", place, deadline_s=START_TIMEOUT_S)
    return found


class _Hung(TimeoutError):
    """A worker that does not answer; it would cost every caller the same time."""


def _exchange(
    request: Json, place: WorkerPaths, deadline: float, *, watchful: bool = False
) -> Json | None:
    """Send one request and return the reply; None where no worker is listening.

    ``watchful`` raises _Hung where there is no answer soon, nor one to a ping.
    """
    try:
        sock = connect(place, deadline)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    with sock:
        send_message(sock, {"hello": own_handshake(), **request}, MAX_REQUEST_BYTES, deadline)
        if watchful and not is_readable(sock, _PING_AFTER_S) and _is_hung(place, deadline):
            raise _Hung
        return receive_message(sock, MAX_REPLY_BYTES, deadline)


def _is_hung(place: WorkerPaths, deadline: float) -> bool:
    """Whether the worker answers no ping, though it had time to start."""
    if deadline - time.monotonic() < _PING_TIMEOUT_S or lock_age_s(place.lock) < START_TIMEOUT_S:
        return False
    return control_worker("ping", place, deadline_s=_PING_TIMEOUT_S) is None


_STOP_POLL_S = 0.01
_STOP_TIMEOUT_S, _SIGTERM_TIMEOUT_S, _SIGKILL_TIMEOUT_S = 8.0, 1.0, 2.0


def stop_worker(place: WorkerPaths | None = None) -> bool | None:
    """Stop the worker and wait for it; None if there was none, False if it is still running."""
    place = place or worker_paths()
    try:
        require_private(place.folder)
    except OSError:
        return None  # another user could have named any process as the worker
    listened = control_worker("stop", place) is not None
    if not listened and not is_locked(place.lock):
        return None
    if listened and _wait_until_unlocked(place, _STOP_TIMEOUT_S):
        return True
    return _end_process(place)


def _end_process(place: WorkerPaths) -> bool:
    kill = getattr(signal, "SIGKILL", signal.SIGTERM)
    return _signal_and_wait(place, signal.SIGTERM, _SIGTERM_TIMEOUT_S) or _signal_and_wait(
        place, kill, _SIGKILL_TIMEOUT_S
    )


def _signal_and_wait(place: WorkerPaths, signal_number: int, timeout_s: float) -> bool:
    """Signal the process recorded in the lock, and wait for the lock to be released."""
    pid = lock_holder(place.lock)
    if pid is not None:
        try:
            os.kill(pid, signal_number)
        except ProcessLookupError:
            return True  # it has just exited
    return _wait_until_unlocked(place, timeout_s)


def _wait_until_unlocked(place: WorkerPaths, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while is_locked(place.lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(_STOP_POLL_S)
    return True
