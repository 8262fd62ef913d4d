"""What tests need of the machine: its absence skips them at home and fails them in CI."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import NoReturn


def report_missing(what: str, *, whole_module: bool = False) -> NoReturn:
    """Ends the test. Where CI is set, as `.ci/run` does, everything has to be there."""
    import pytest  # the benchmarks start servers too, and have none

    said = f"{what} is not installed"
    if os.environ.get("CI"):
        pytest.fail(f"{said}, and CI must run every test")
    pytest.skip(said, allow_module_level=whole_module)


def skip_without_extra(extra: str, *libraries: str) -> None:
    """Skips a module whose libraries are not there; unlike importorskip, it imports none."""
    if not all(map(find_spec, libraries)):
        report_missing(f"the extra {extra}", whole_module=True)
