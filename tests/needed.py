"""What tests need of the machine: its absence skips them at home and fails them in CI."""

from __future__ import annotations

import os
from typing import NoReturn


def report_missing(what: str) -> NoReturn:
    """Ends the test. Where CI is set, as `.ci/run` does, everything has to be there."""
    import pytest  # the benchmarks start servers too, and have none

    said = f"{what} is not installed"
    if os.environ.get("CI"):
        pytest.fail(f"{said}, and CI must run every test")
    pytest.skip(said)
