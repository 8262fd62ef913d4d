"""Skills: commands that twice turned a failure into a pass become a proposed procedure.

A trial is what an agent ran between a command that failed and the same command passing, with no
word of the user between. The first trial of its kind is kept out of sight; a second one, of
another session and with at least 70 % of the same steps, becomes a procedure in the inbox.
Values that differ between the two are placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import shorten
from bethink.errors import Refused
from bethink.importers.claude_code import Command, read_commands
from bethink.ingest.redaction import redact
from bethink.model import Draft, Item
from bethink.model.item import REFUSED

if TYPE_CHECKING:
    from bethink.core.json_values import Json
    from bethink.memory import Memory

PROCEDURE, TRIAL = "procedure", "trial"
_SAME_STEPS = 0.7  # share of the steps of two trials that must be the same
_MAX_STEPS = 12
_VALUE = "<value>"
_VARYING = re.compile(r"""(['"]).*?\1|\b[0-9a-f]{7,}\b|\d+|(?:\.{0,2}/|~/)[\w./-]+""")
# Commands that lose data are never written into a file that an agent follows.
_DESTRUCTIVE = re.compile(
    r"\brm\s+-\w*[rf]|\bgit\s+(?:push\s.*(?:-f\b|--force)|reset\s+--hard|clean\s+-\w*f)"
    r"|\b(?:drop|truncate)\s+(?:table|database|schema)\b|\bdelete\s+from\b|\bmkfs|\bdd\s+if="
    r"|\b(?:terraform|pulumi)\s+destroy|\bkubectl\s+delete|>\s*/dev/sd|\bshred\b|\bdropdb\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_NAME, MAX_DESCRIPTION = 64, 1024


class Trial(NamedTuple):
    """What was run between a failure and a pass of the same command, in a session."""

    failing: str
    error: str
    steps: tuple[str, ...]
    session: str = ""

    @property
    def shape(self) -> frozenset[str]:
        """The steps without what varies."""
        return frozenset(map(without_values, self.steps))

    def is_like(self, other: Trial) -> bool:
        """Whether another session did the same about the same failure."""
        same_failure = without_values(self.failing) == without_values(other.failing)
        shared = len(self.shape & other.shape) / max(1, len(self.shape | other.shape))
        return self.session != other.session and same_failure and shared >= _SAME_STEPS


def without_values(command: str) -> str:
    """Return a command with a placeholder for each text, number, hash and path."""
    return _VARYING.sub(_VALUE, " ".join(command.split()))


def find_trials(commands: Sequence[Command]) -> Iterator[Trial]:
    """Yield what led from each failing command to its pass, without a prompt between."""
    for place, failed in enumerate(commands):
        if not failed.failed:
            continue
        steps: list[str] = []
        for later in commands[place + 1 :]:
            if later.after_prompt:
                break
            if later.failed:
                continue
            if without_values(later.text) == without_values(failed.text):
                if steps:
                    yield Trial(failed.text, failed.error, tuple(dict.fromkeys(steps))[:_MAX_STEPS])
                break
            steps.append(later.text)


def note_trials(memory: Memory, transcript: Path, *, session: str, start: int = 0) -> None:
    """Keep the trials of a transcript; propose those that another session has made, too."""
    commands = [
        one._replace(text=redact(one.text).text, error=redact(one.error).text)
        for one in read_commands(transcript, start=start)
    ]
    found = [one._replace(session=session) for one in find_trials(commands)]
    known = list(_known_trials(memory)) if found else []
    for trial in found:
        twin = next((one for one in known if one.is_like(trial)), None)
        if twin is not None:
            memory.propose(_procedure(twin, trial), reason="worked in two sessions")
        text, key = "\n".join((trial.failing, *trial.steps)), without_values(trial.failing)
        draft = _draft(text, TRIAL, f"{session}:{key}", trial._asdict())
        memory.propose(draft, reason="a procedure that worked once", waits=False)


def _draft(text: str, kind: str, key: str, fields: Json) -> Draft:
    return Draft(
        text, kind=kind, tags=("skill",), source="capture", source_class="agent", force=True,
        key=shorten(f"{kind}:{key}", 190), metadata={kind: fields},
    )  # fmt: skip


def _known_trials(memory: Memory) -> Iterator[Trial]:
    """Yield the trials that were kept."""
    for item in memory.store.items.get(memory.store.admin.ended_as(REFUSED)).values():
        fields = item.metadata.get(TRIAL)
        if item.kind == TRIAL and isinstance(fields, Mapping):
            yield Trial(**{**fields, "steps": tuple(fields["steps"])})


def _procedure(known: Trial, trial: Trial) -> Draft:
    """Make the draft of a procedure from two trials of it."""
    failing = _common(known.failing, [trial.failing])
    kept = [step for step in known.steps if without_values(step) in trial.shape]
    steps = [_common(step, trial.steps) for step in kept]
    numbered = "\n".join(f"{n}. `{step}`" for n, step in enumerate(steps, 1))
    error = f" ({shorten(known.error, 200)})" if known.error else ""
    text = f"When `{failing}` fails{error}, this made it pass:\n{numbered}"
    fields = known._asdict() | {"failing": failing, "steps": steps}
    fields["sessions"] = [one for one in (known.session, trial.session) if one]
    return _draft(text, PROCEDURE, f"{without_values(failing)}:{'|'.join(kept)}", fields)


def _common(command: str, others: Iterable[str]) -> str:
    """Return a command with placeholders where the same command had other values."""
    shape = without_values(command)
    words = command.split()
    for other in others:
        if without_values(other) == shape and len(other.split()) == len(words):
            pairs = zip(words, other.split(), strict=True)
            words = [one if one == two else _VALUE for one, two in pairs]
    return " ".join(words)


def list_skills(memory: Memory) -> list[tuple[str, str, str]]:
    """Return the id, state and text of accepted procedures, then of those that wait."""
    accepted = memory.browse(kind=PROCEDURE, tag="skill", limit=500)
    waiting = [one for one in memory.inbox() if one.draft.kind == PROCEDURE]
    rows = [(one.id, "accepted", one.text) for one in accepted]
    return rows + [(one.id, "waiting", one.text) for one in waiting]


def export_skill(item: Item, folder: Path) -> Path:
    """Write an accepted procedure as SKILL.md; the skill is named as the folder."""
    fields = item.metadata.get(PROCEDURE)
    if not isinstance(fields, Mapping):
        raise Refused(f"{item.id} is no procedure", remedy="bethink skills lists them")
    name = folder.resolve().name
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        rule = f"use at most {MAX_NAME} lower-case letters, digits and hyphens"
        raise Refused(f"{name!r} cannot be the name of a skill", remedy=rule)
    for step in fields["steps"]:
        if _DESTRUCTIVE.search(step):
            raise Refused(f"a step can lose data: {step}", remedy="write that skill by hand")
    failing, sessions = fields["failing"], ", ".join(fields["sessions"])
    what = " ".join(f"Use when {failing} fails. {fields['error']}".split())
    described = shorten(what, MAX_DESCRIPTION).replace('"', "'")
    steps = "\n".join(f"{n}. `{step}`" for n, step in enumerate(fields["steps"], 1))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "SKILL.md"
    path.write_text(
        f'---\nname: {name}\ndescription: "{described}"\n---\n\n# {name}\n\n## When\n\n'
        f"`{failing}` fails.\n\n## Steps\n\n{steps}\n\nThen run `{failing}` again. Replace each "
        f"{_VALUE}.\n\n## Evidence\n\nIt worked in the sessions {sessions} (memory {item.id}).\n",
        "utf-8",
    )
    return path
