"""Questions as JSON and back, and what the worker's client loads."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from bethink.worker.query import QueryRequest

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def test_a_question_comes_back_as_it_was():
    """Its options are JSON; several values of one are a tuple again."""
    asked = QueryRequest("key?", "remind", {"kind": ("a", "b"), "k": 3}, NOW, steps=True, id="7")

    back = QueryRequest.from_json(json.loads(json.dumps(asked.to_json())))

    assert back.keywords == asked.keywords == {"kind": ("a", "b"), "k": 3, "now": NOW}
    assert back._replace(options={}) == asked._replace(options={})


HEAVY = {"numpy", "apsw", "click", "tomllib", "random", "bethink.model", "bethink.lang.words"}


@pytest.mark.parametrize(
    "modules", ["bethink.hooks.handlers, bethink.worker.client", "bethink.cli.queries"]
)
def test_the_client_of_the_worker_is_light(modules: str) -> None:
    """What the worker saves, its client does not pay for: no model, word list or data type."""
    code = f"import sys, {modules}\nprint(sorted({HEAVY!r} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "[]", done.stderr
