"""Task prompts get the memories on their subject; unrelated prompts get nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink.agents.prompt import prompt_context
from bethink.memory import Memory

STORES = {
    "shop": (
        "Deployments go through Spinnaker and need two approvals.",
        "New services use PostgreSQL 16; MySQL is only for the legacy shop.",
        "Colours come from the design tokens in theme.css; never hard-code hex values.",
        "The invoice job runs nightly at 02:30 UTC and must not be stopped.",
        "Tests that need a browser live in tests/ui and run with playwright.",
        "Release notes are written in German and English.",
        "Nobody pushes to main after noon on Fridays.",
        "The search index is rebuilt with make reindex, which takes an hour.",
    ),
    "trip": (
        "Marta gets seasick, so no boats.",
        "Our budget for hotels is 90 euros a night.",
        "We land in Lisbon on 4 June at 14:10.",
        "Jonas eats gluten free.",
        "The rental car is booked with Guerin, confirmation 88213.",
        "Prefer museums in the morning and the beach in the afternoon.",
    ),
    "podcast": (
        "Podcast episodes are mastered at -16 LUFS.",
        "Guest interviews are recorded on Riverside, with a local backup.",
        "Episode titles have at most 60 characters and no question marks.",
        "The newsletter goes out on Thursdays at 7 in the morning.",
        "Sponsor reads come after the first ten minutes.",
        "Cover art uses the typeface Recoleta on a dark green background.",
        "Never publish the names of listeners who write in.",
    ),
}
# The prompt, and which memory of its store is on its subject.
TASKS = {
    "shop": (
        ("deploy the new version now", 0),
        ("which database should the new service use?", 1),
        ("make the header a bit darker, #223344 or so, and add a shadow", 2),
        ("stop all background jobs, including the invoice job, and restart the queue", 3),
        ("write a browser test for the login page", 4),
        ("Look at the diff first. Then write the release notes for version 4.2.", 5),
        ("merge this and push it to main", 6),
    ),
    "trip": (
        ("find a nice hotel in Lisbon for two nights", 1),
        ("look for restaurants near the hotel that Jonas can eat at", 3),
        ("plan a day with a boat tour and a picnic", 0),
    ),
    "podcast": (
        ("suggest five titles for the next episode", 2),
        ("export the final master of the podcast episode", 0),
    ),
}
UNRELATED = {
    "shop": (
        "explain the theory of relativity to a child",
        "rename this variable to something shorter",
        "what is 17 times 23?",
        "write a limerick about a cat",
        "why is the sky blue?",
    ),
    "trip": (
        "sort this list of numbers in ascending order",
        "fix the indentation of the function above",
        "who painted the Night Watch?",
    ),
    "podcast": (
        "convert the temperature from celsius to fahrenheit",
        "install the latest version of node on my laptop",
        "how do plants make sugar from light?",
        "undo the last change and try the other approach",
    ),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Memory]]:
    folder: Path = tmp_path_factory.mktemp("stores")
    opened = {name: Memory.open(path=folder / f"{name}.db") for name in STORES}
    for name, memory in opened.items():
        memory.remember_many(STORES[name])
    yield opened
    for memory in opened.values():
        memory.close()


def test_tasks_get_the_memory_on_their_subject(stores: dict[str, Memory]) -> None:
    """At least ten of twelve, though none is a question that the memory answers."""
    missed = [
        prompt
        for name, tasks in TASKS.items()
        for prompt, expected in tasks
        if STORES[name][expected] not in prompt_context(stores[name], {"prompt": prompt})
    ]

    assert sum(map(len, TASKS.values())) == 12
    assert len(missed) <= 2, missed


def test_unrelated_prompts_get_nothing(stores: dict[str, Memory]) -> None:
    """Prompts on another subject, questions or tasks: one of twelve may share a word's sense."""
    given = [
        prompt
        for name, prompts in UNRELATED.items()
        for prompt in prompts
        if prompt_context(stores[name], {"prompt": prompt})
    ]

    assert sum(map(len, UNRELATED.values())) == 12
    assert len(given) <= 1, given


def test_a_clause_of_a_long_prompt_is_enough(stores: dict[str, Memory]) -> None:
    """What else a prompt speaks of does not hide the memory of one of its clauses."""
    prompt = (
        "Thanks, that looks better already. The spacing of the second table is still off by a "
        "few pixels and the tooltip flickers when I move the mouse quickly, please check both. "
        "After that rebuild the search index, and tell me when you have finished everything."
    )

    assert "make reindex" in prompt_context(stores["shop"], {"prompt": prompt})
