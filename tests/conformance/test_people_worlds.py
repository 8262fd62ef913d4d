"""Nothing that others keep for themselves is seen, inferred or changed by a person.

Two worlds differ only in what Ben keeps from Anna. Every operation of every surface gives
Anna the same bytes in both, and what Ben keeps stays as it was.
"""

from __future__ import annotations

import os
import random
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
import test_twin_worlds as worlds
from test_twin_worlds import _any_verdict, _same_ids  # noqa: F401 - fixtures

from bethink import Memory
from bethink.access import people as access_people
from bethink.access.people import Directory
from bethink.access.policy import Right
from bethink.core import ids
from bethink.model.item import AUDIENCE
from bethink.render.wire import dumps
from server_app import SPACE, Callers, bearer, make_guard, make_test_app, talk
from thorough import examples

SEEDS = int(os.environ.get("BETHINK_PEOPLE_WORLDS", examples(1, 3)))
NAMES = ("anna", "ben", "carl")


class PeopleWorld(worlds.World):
    """One space of three people; Ben and Carl may keep things from Anna."""

    def __init__(self, *, secrets: bool, seed: int, folder: Path, **more: Any) -> None:
        numbers = count()
        access_people.secrets.token_hex = lambda _: f"{next(numbers):016x}"  # type: ignore[assignment]
        self.directory = Directory(folder / f"{secrets}-{seed}")
        super().__init__(secrets=secrets, seed=seed, **more)

    def _tell(self, chance: random.Random) -> None:
        self.space = self.owner
        for name in NAMES:
            self.directory.add(name, self.space.store.space, "owner")
        self.low, self.ben, self.carl = (self._seen_by(name) for name in NAMES)
        self.owner = self.ben  # whose deeds for all are the same in both worlds
        self.low.remember("Anna keeps the spare key in room 12", audience="private")
        self.shared = self.low.remember("Anna and Carl meet at dock nine", audience="carl").id
        super()._tell(chance)
        self.low, self.ben = self._seen_by("anna"), self._seen_by("ben")

    def _seen_by(self, name: str) -> Memory:
        return self.space.seen_by(name, self.directory)

    def _keep_secret(self, plan: list[float], text: str, number: int) -> None:
        word = worlds.SECRET_WORDS[number % 3]
        more: dict[str, Any] = {"audience": "private" if plan[4] < 0.7 else "carl"}
        if plan[0] < 0.4:
            more |= {"session": "talk", "speaker": f"Spy {word}"}
        if plan[1] < 0.4:
            more |= {"key": f"guess-{number}", "kind": f"{word}kind"}
        said = text if plan[3] < 0.5 else f"{text}, said the {word} informant"
        if plan[4] < 0.2:
            said = said.replace("Alice Meyer", "ALICE MEYER")
        ben = self._seen_by("ben")
        made = ben.remember(said, **more)
        if made.status != "stored":
            return
        self.secret.append(made.id)
        if plan[5] < 0.2:
            ben.update(made.id, text=f"{said} again")
        elif plan[5] < 0.3:
            ben.forget(made.id)
        elif plan[5] < 0.4:
            ben.forget(made.id, erase=True)
            self.secret.pop()
        elif plan[5] < 0.5:
            self.secret[-1] = ben.update(made.id, audience="carl").id
        ben.recall(text, track=True)
        ids.make_id._last = 0  # a recall's id is of the real clock

    def _tie_secrets(self) -> None:
        self.clock.now += timedelta(milliseconds=500)
        ben = self._seen_by("ben")
        items = ben.store.items.get(self.secret)
        kept = [one for one in self.secret if one in items and items[one].live_to is None]
        own = [one for one in kept if items[one].metadata[AUDIENCE] == "private"]
        ben.put_thread("Zebracanary plans", own[:2], id="secret-thread")
        ben.link(own[0], "contradicts", own[1])
        ben.recall("Heron audit", track=True, profile="remind")
        ben.recall("zebracanary", track=True, ids=tuple(kept))
        ids.make_id._last = 0

    def above(self) -> str:
        items = self._seen_by("ben").store.items.get(self.secret).values()
        told = [(item.id, item.rev, item.text, item.status, item.live_to) for item in items]
        return dumps(sorted([str(part) for part in one] for one in told))


def _in_both(conversation: Any, seed: int, folder: Path) -> tuple[list[str], list[str], Any]:
    """Let Anna talk to the servers of two worlds."""
    told: list[list[str]] = []
    for secrets in (False, True):
        world = PeopleWorld(secrets=secrets, seed=seed, folder=folder)
        before = world.above()
        callers = Callers(folder / f"{secrets}-{seed}")  # where the directory is
        anna = world.directory.find("anna").id
        secret = callers.tokens.create("anna", Right.ADMIN, (SPACE,), person=anna)
        heard: list[str] = []

        async def run(
            client: httpx.AsyncClient,
            world: PeopleWorld = world,
            heard: list[str] = heard,
            headers: dict[str, str] = bearer(secret),  # noqa: B008 - bound now
        ) -> None:
            await conversation(client, world, heard, headers)

        talk(make_test_app(world.space, make_guard(callers)), run)
        assert world.above() == before
        told.append([worlds._without_timing(one) for one in heard])
    return told[0], told[1], world


@pytest.mark.parametrize("seed", range(3, 3 + SEEDS))
def test_worlds_of_people_answer_alike_over_rest(seed: int, tmp_path: Path) -> None:
    """Every route gives Anna the same bytes whatever Ben keeps."""
    worlds._compare(*_in_both(worlds.talk_over_rest, seed, tmp_path))


@pytest.mark.parametrize("seed", range(7, 7 + SEEDS))
def test_worlds_of_people_answer_alike_over_mcp(seed: int, tmp_path: Path) -> None:
    """Every tool, resource and prompt gives Anna the same bytes whatever Ben keeps."""
    worlds._compare(*_in_both(worlds.talk_over_mcp, seed, tmp_path))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_worlds_of_people_answer_alike_in_python(seed: int, tmp_path: Path) -> None:
    """What Ben keeps changes no answer to Anna, nor is it changed by her."""
    plain = PeopleWorld(secrets=False, seed=seed, folder=tmp_path)
    full = PeopleWorld(secrets=True, seed=seed, folder=tmp_path)
    before = full.above()
    assert full.secret
    for name, asked in worlds.python_operations().items():
        for number, ask in enumerate(asked):
            told = [worlds._told_alike(world, ask) for world in (plain, full)]
            assert told[0] == told[1], (name, number, worlds._difference(*told))
            assert not any(word in told[1] for word in full.secret), name
    assert full.above() == before
    ids.make_id._last = 0
