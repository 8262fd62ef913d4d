"""Maintenance jobs: what happens to memories between remembering and recalling.

A job is one class, one line here, one row in the docs.
"""

from __future__ import annotations

from collections.abc import Callable

from bethink.maintain.cleanup import Duplicates, Expire, Forget, Relate
from bethink.maintain.consolidate import Concepts, Consolidate
from bethink.maintain.entities import Extract, RefreshEntities
from bethink.maintain.insights import Insights
from bethink.maintain.job import Job
from bethink.maintain.notes import WriteNotes
from bethink.maintain.threads import FindThreads

JOBS: dict[str, Callable[[], Job]] = {
    "duplicates": Duplicates,
    "consolidate": Consolidate,
    "concepts": Concepts,
    "entities": RefreshEntities,
    "relate": Relate,
    "extract": Extract,
    "threads": FindThreads,
    "insights": Insights,
    "notes": WriteNotes,
    "expire": Expire,
    "forget": Forget,
}
# What a run does when no job is named. Concepts say facts again in other words, which
# only some profiles want; forgetting is asked for by name.
DEFAULT_JOBS = (
    "duplicates",
    "consolidate",
    "entities",
    "relate",
    "extract",
    "threads",
    "insights",
    "notes",
    "expire",
)
