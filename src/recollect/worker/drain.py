"""Works off what was handed over, one after the other, beside what is asked meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from math import inf
from threading import Event, Thread
from typing import Literal

from recollect.worker.lock import take
from recollect.worker.place import make_private
from recollect.worker.spool import TRIES, Handed, Spool

_LOOK_EVERY_S = 5.0
_WAIT_S = 10.0  # before a second try; then twice as long each time


# What became of a try. One that found the store busy does not count, nor does what is not
# for this worker.
Outcome = Literal["done", "failed", "busy", "not here"]


class Drain:
    """A thread that takes hand-overs from the spool; ``perform`` does one of them."""

    def __init__(
        self, spool: Spool, perform: Callable[[Handed], Outcome], log: Callable[[str], None]
    ) -> None:
        self._spool = spool
        self._perform = perform
        self._log = log
        self._bell = Event()
        self._ending = Event()
        self._hurry = Event()
        self._not_before: dict[str, float] = {}
        self._thread = Thread(target=self._run, name="recollect-spool", daemon=True)
        self.busy = True  # until it has looked for the first time

    def begin(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """There is something new."""
        self.busy = True
        self._bell.set()

    def end(self, wait_s: float, *, hurry: bool) -> None:
        """Looks once more and ends; in a ``hurry`` nothing new is begun. What is under way
        may take so long."""
        if hurry:
            self._hurry.set()
        self._ending.set()
        self._bell.set()
        self._thread.join(wait_s)

    def work_off(self) -> None:
        """Everything that is due. Where another worker is at it, that is left to it."""
        make_private(self._spool.folder)
        handle = take(self._spool.folder / ".lock")
        if handle is None:
            return
        try:
            self._spool.sweep()
            while not self._hurry.is_set() and (due := self._due()):
                for name in due:
                    if not self._hurry.is_set():
                        self._one(name)
        finally:
            os.close(handle)

    def _due(self) -> list[str]:
        now = time.monotonic()
        return [name for name in self._spool.waiting() if self._not_before.get(name, 0.0) <= now]

    def _one(self, name: str) -> None:
        handed = self._spool.take(name)
        if handed is None:
            # Not now: what was begun before comes first, or it could not be read.
            self._not_before[name] = time.monotonic() + _LOOK_EVERY_S
            return
        begun = f"{name.removesuffix('.json').removesuffix('.work')}.work"
        outcome = self._perform(handed)
        if outcome == "done":
            self._spool.done(name)
            self._not_before.pop(begun, None)
        elif outcome == "failed" and handed.tries >= TRIES:
            self._spool.give_up(name)
            self._log(f"given up after {handed.tries} tries: {handed.kind}")
        else:
            if outcome != "failed":
                self._spool.put_back(name, handed)
            wait_s = inf if outcome == "not here" else _WAIT_S * 2 ** (handed.tries - 1)
            self._not_before[begun] = time.monotonic() + wait_s

    def _run(self) -> None:
        last = False
        while not last:
            last = self._ending.is_set()
            self._bell.clear()
            self.busy = True
            try:
                self.work_off()
            except OSError as error:
                self._log(f"the spool cannot be worked off: {error}")
            self.busy = self._bell.is_set()
            if not last and not self._ending.is_set():
                self._bell.wait(_LOOK_EVERY_S)
