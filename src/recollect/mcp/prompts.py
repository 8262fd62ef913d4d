"""Prompts a person can choose in their host: begin with what is known, end by keeping it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from recollect.errors import Refused
from recollect.jsonable import Json

if TYPE_CHECKING:
    from recollect.memory import Memory


class Prompt(NamedTuple):
    """A prompt, what it takes, and what it says then."""

    title: str
    description: str
    takes: Mapping[str, str]
    says: Callable[[Memory, str], str]

    def listed(self, name: str) -> Json:
        """As `prompts/list` tells of it."""
        return {
            "name": name,
            "title": self.title,
            "description": self.description,
            "arguments": [
                {"name": one, "description": told, "required": True}
                for one, told in self.takes.items()
            ],
        }


def _begin(memory: Memory, task: str) -> str:
    from recollect.mcp.fencing import labelled, quoted  # heavy: not before the server answers

    answer = memory.recall(task, track=False)
    known = quoted([labelled(hit.item) for hit in answer.hits]) or f"(nothing: {answer.reason})"
    return (
        f"The task: {task}\n\nWhat is remembered about it:\n\n{known}\n\n"
        "Say in two sentences what of this matters for the task and what contradicts it, "
        "then begin. Use recall when another question comes up."
    )


def _keep(_: Memory, __: str) -> str:
    return (
        "Look back over this conversation and remember what will matter later: decisions with "
        "their reasons, facts that were established, preferences of the user, caveats, what is "
        "left to do. For each, first recall whether it is known; correct an outdated memory "
        "with update_memory instead of storing a second one. One self-contained statement a "
        "memory; no logs, no code, nothing that recall returned. List what you stored."
    )


def _review(memory: Memory, subject: str) -> str:
    from recollect.mcp.fencing import labelled, quoted  # heavy: not before the server answers

    answer = memory.recall(subject, track=False, k=20)
    known = quoted([labelled(hit.item) for hit in answer.hits]) or f"(nothing: {answer.reason})"
    return (
        f"These are the memories about {subject}:\n\n{known}\n\n"
        "Name those that contradict each other, are outdated or say the same. Propose for each "
        "what to correct or forget, and change nothing before the user agrees."
    )


PROMPTS = {
    "begin": Prompt(
        "Begin with what is known",
        "Starts a task from what is remembered about it.",
        {"task": "What is to be done."},
        _begin,
    ),
    "keep": Prompt(
        "Keep what matters",
        "Stores what this conversation brought that will matter later.",
        {},
        _keep,
    ),
    "review": Prompt(
        "Review memories",
        "Looks through what is remembered about something, for what is wrong or outdated.",
        {"subject": "A topic, a person, a project."},
        _review,
    ),
}


def said(name: str, given: Mapping[str, str], memory: Callable[[], Memory]) -> str:
    """The prompt's text, or Refused."""
    if name not in PROMPTS:
        raise Refused("there is no such prompt", remedy=f"one of {', '.join(PROMPTS)}")
    prompt = PROMPTS[name]
    missing = [one for one in prompt.takes if not given.get(one, "").strip()]
    if missing:
        raise Refused(f"the argument {missing[0]} is missing", remedy=prompt.takes[missing[0]])
    return prompt.says(memory(), next((given[one] for one in prompt.takes), ""))
