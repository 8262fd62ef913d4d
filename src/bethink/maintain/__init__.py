"""Maintenance jobs: what happens to memories between remembering and recalling.

A job is one class, one line here, one row in the docs.
"""

from __future__ import annotations

from collections.abc import Callable

from bethink.core.registry import Registry
from bethink.maintain.job import Job

JOBS: Registry[Callable[[], Job]] = Registry(
    "job",
    {
        "duplicates": "bethink.maintain.cleanup:Duplicates",
        "consolidate": "bethink.maintain.consolidate:Consolidate",
        "concepts": "bethink.maintain.consolidate:Concepts",
        "entities": "bethink.maintain.entities:RefreshEntities",
        "updates": "bethink.maintain.updates:JudgeUpdates",
        "relate": "bethink.maintain.cleanup:Relate",
        "extract": "bethink.maintain.extract:Extract",
        "threads": "bethink.maintain.threads:FindThreads",
        "insights": "bethink.maintain.insights:Insights",
        "notes": "bethink.maintain.notes:WriteNotes",
        "expire": "bethink.maintain.cleanup:Expire",
        "forget": "bethink.maintain.cleanup:Forget",
    },
)
# Jobs of a run without names. Concepts restate facts, which only some profiles use;
# forgetting must be named explicitly.
DEFAULT_JOBS = (
    "duplicates", "consolidate", "entities", "updates", "relate", "extract", "threads", "insights",
    "notes", "expire",
)  # fmt: skip
