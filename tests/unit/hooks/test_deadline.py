"""Work with a limit, each time in a process that does nothing else: it is forked."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap

from bethink.hooks.dispatch import MAX_BYTES

_HEAD = "import os, signal, sys, time\nfrom bethink.hooks.dispatch import *\n"


def ran(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _HEAD + textwrap.dedent(code)],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip


def test_work_that_is_done_in_time_answers() -> None:
    """The whole answer comes back, however long it is."""
    done = ran("""
        text = "ä" * 400_000
        print(run_with_deadline(20, lambda: text).answer == text, run_with_deadline(20, str).answer == "")
    """)

    assert done.stdout == "True True\n", done.stderr


def test_work_that_takes_too_long_is_ended() -> None:
    """At the limit there is no answer, nobody is left working, and the reason is told."""
    done = ran("""
        print(run_with_deadline(0.3, lambda: time.sleep(600) or "late"))
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("nobody left")
    """)

    assert (
        done.stdout == "WorkResult(answer=None, why='missed its deadline of 300 ms')\nnobody left\n"
    )


def test_work_that_cannot_be_interrupted_is_ended_too() -> None:
    """A child that takes no signals and holds the interpreter is killed all the same."""
    done = ran("""
        def stubborn():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            return str(sum(range(10**11)))
        print(run_with_deadline(0.3, stubborn).answer)
    """)

    assert done.stdout == "None\n"


def test_a_child_ends_without_its_parent_too() -> None:
    """A host that kills the hook itself leaves nobody behind who works on for ever."""
    reading, writing = os.pipe()
    code = """
        def orphaned():
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(600)
        run_with_deadline(0.5, orphaned)
    """
    with subprocess.Popen(
        [sys.executable, "-c", _HEAD + textwrap.dedent(code)], pass_fds=[writing]
    ) as parent:
        os.close(writing)
        assert parent.wait(60) == -signal.SIGKILL

    # Closed by the last process that holds it.
    assert select.select([reading], [], [], 60)[0]
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_work_that_fails_gives_no_answer() -> None:
    """An exception, a crash, an exit: no answer, nothing printed, the parent goes on."""
    done = ran("""
        def fails():
            print("noise", flush=True)
            os.write(2, b"more noise")
            raise ValueError("no")
        answers = [
            run_with_deadline(20, fails).answer,
            run_with_deadline(20, lambda: os.kill(os.getpid(), signal.SIGSEGV) or "x").answer,
            run_with_deadline(20, lambda: sys.exit(0)).answer,
            run_with_deadline(20, lambda: 7).answer,
        ]
        print(answers)
    """)

    assert (done.stdout, done.stderr) == ("[None, None, None, None]\n", "")


def test_an_answer_without_end_is_none() -> None:
    """More than any host would take is not passed on."""
    assert (
        ran(f"print(run_with_deadline(20, lambda: 'x' * {MAX_BYTES + 1}).answer)").stdout
        == "None\n"
    )


def test_no_time_is_no_answer() -> None:
    """Where the time is used up already, nothing is begun."""
    done = ran(
        "print(run_with_deadline(0, lambda: 'x').answer, run_with_deadline(-1, lambda: 'x').answer)"
    )

    assert done.stdout == "None None\n"


def test_the_age_counts_from_the_start_of_the_process() -> None:
    """A process that has only begun is young, and gets older."""
    done = ran("a = process_age_s(); time.sleep(0.2); print(a, process_age_s() - a)")

    young, grown = map(float, done.stdout.split())
    assert 0 <= young < 60
    assert 0.15 < grown < 60
