"""On a busy machine hooks have longer deadlines; without a worker words answer at least."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bethink import Memory
from bethink.hooks import dispatch, handlers
from bethink.hooks.dispatch import EVENTS, slowness
from rows import each_row


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    slowness.cache_clear()
    yield
    slowness.cache_clear()


def make_busy(
    monkeypatch: pytest.MonkeyPatch, *, age_s: float = 0.05, cpu_s: float = 0.05, load: float = 0.0
) -> None:
    monkeypatch.setattr(dispatch, "process_age_s", lambda: age_s)
    monkeypatch.setattr("time.process_time", lambda: cpu_s)
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.cpu_count", lambda: 2)


@each_row(
    ("age_s", "cpu_s", "load", "expected"),
    [
        (0.06, 0.05, 0.0, 1.0),
        (0.09, 0.06, 1.0, 1.0),
        (0.60, 0.06, 1.0, 10.0),
        (0.06, 0.05, 20.0, 10.0),
        (9.00, 0.05, 50.0, 16.0),
    ],
)
def test_slowness_is_waiting_by_working(
    monkeypatch: pytest.MonkeyPatch, age_s: float, cpu_s: float, load: float, expected: float
) -> None:
    """By how long the start took, or by how many processes wait; 1 on an idle machine."""
    make_busy(monkeypatch, age_s=age_s, cpu_s=cpu_s, load=load)

    assert slowness() == pytest.approx(expected)


def test_deadlines_grow_with_the_load_and_stay_below_the_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Idle they are as documented; busy longer, but the host never gives up first."""
    monkeypatch.delenv(dispatch.DEADLINE_VARIABLE, raising=False)
    make_busy(monkeypatch)
    idle = {name: dispatch._deadline_s(event) for name, event in EVENTS.items()}
    slowness.cache_clear()
    make_busy(monkeypatch, load=20.0)
    busy = {name: dispatch._deadline_s(event) for name, event in EVENTS.items()}

    assert idle == {name: event.limit_s for name, event in EVENTS.items()}
    assert busy["user-prompt-submit"] == 8.0
    assert all(busy[name] < event.host_s for name, event in EVENTS.items())
    assert all(busy[name] >= idle[name] for name in EVENTS)


def test_a_deadline_that_was_set_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the load."""
    make_busy(monkeypatch, load=20.0)
    monkeypatch.setenv(dispatch.DEADLINE_VARIABLE, "0.7")

    assert dispatch._deadline_s(EVENTS["user-prompt-submit"]) == 0.7


@pytest.mark.parametrize(
    ("configured", "used"),
    [
        ("encoder", "encoder"),
        ("sentence-transformers:x", "none"),
        ("openai:text-embedding-3-small", "none"),
    ],
)
def test_words_answer_where_a_model_would_take_too_long(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, configured: str, used: str
) -> None:
    """Without a worker; the worker is started before anything else, for the next prompt."""
    for name, folder in (("HOME", "home"), ("BETHINK_DATA_DIR", "data"), ("XDG_STATE_HOME", "s")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("BETHINK_EMBEDDER", configured)
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    payload = {"prompt": "where does the deploy key live?", "cwd": str(project), "session_id": "s"}
    settings = handlers._load_settings(payload)
    assert settings is not None
    with Memory.open(settings=replace(settings, embedder="none")) as memory:
        memory.remember_many([f"Gauge {n} of bridge {n * 7} was read" for n in range(30)])
        memory.remember("The deploy key lives in vault B")
    done: list[str] = []
    opened = Memory.open
    monkeypatch.setattr(handlers, "_warm_up", lambda _: done.append("worker"))
    monkeypatch.setattr(
        Memory, "open", lambda **given: done.append(given["settings"].embedder) or opened(**given)
    )

    assert "vault B" in handlers.on_user_prompt_submit(payload)
    assert done == ["worker", used]


def test_late_input_is_told_from_wrong_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The log says which, and how busy the machine was."""
    make_busy(monkeypatch, load=20.0)
    lines: list[str] = []
    monkeypatch.setattr(dispatch, "log_message", lines.append)
    event = EVENTS["user-prompt-submit"]
    for data in (None, b"[1]", json.dumps({"prompt": "x"}).encode()):
        monkeypatch.setattr(dispatch, "read_input", lambda _, data=data: data)
        payload = dispatch._read_payload(event, 1.0)

    assert payload == {"hook_event_name": "UserPromptSubmit", "prompt": "x"}
    assert len(lines) == 2
    assert "late; the machine is 10 times slower than idle" in lines[0]
    assert "no JSON object" in lines[1]
