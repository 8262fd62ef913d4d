"""Services of `Memory`: write, recall, browse, link, files, maintenance."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from bethink.core.registry import import_object


def service(location: str) -> Any:
    """Return a property that makes a service of this package when it is first used.

    Most programs need one or two of them: start-up time.
    """
    return cached_property(lambda memory: import_object(f"bethink.api.{location}")(memory.session))
