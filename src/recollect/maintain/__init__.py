"""Maintenance: what happens to memories between remembering and recalling.

A job is one class, one line here, one row in the docs.
"""

from __future__ import annotations

from collections.abc import Callable

from recollect.maintain.concepts import Concepts
from recollect.maintain.consolidate import Consolidate
from recollect.maintain.duplicates import Duplicates
from recollect.maintain.entities import Entities
from recollect.maintain.expire import Expire
from recollect.maintain.extract import Extract
from recollect.maintain.forget import Forget
from recollect.maintain.insights import Insights
from recollect.maintain.job import Job
from recollect.maintain.notes import WriteNotes
from recollect.maintain.relate import Relate
from recollect.maintain.threads import Threads

JOBS: dict[str, Callable[[], Job]] = {
    "duplicates": Duplicates,
    "consolidate": Consolidate,
    "concepts": Concepts,
    "entities": Entities,
    "relate": Relate,
    "extract": Extract,
    "threads": Threads,
    "insights": Insights,
    "notes": WriteNotes,
    "expire": Expire,
    "forget": Forget,
}
# What a run does when no job is named. Concepts say facts again in other words, which
# only some profiles want; forgetting is asked for by name.
USUAL = (
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
