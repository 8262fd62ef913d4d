"""Figures for Prometheus: how often, how fast, how well; never what was said or asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from recollect.jsonable import Json
from recollect.mcp.calling import Asked
from recollect.mcp.http import is_brief
from recollect.version import __version__

MEDIA = CONTENT_TYPE_PLAIN_0_0_4
ROUTE = "recollect.route"  # under which a request's scope says which route it took
_METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Figures:
    """The counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        self._all = own = CollectorRegistry()
        self._requests = Counter(
            "recollect_http_requests", "Requests answered.", ["route", "method", "status"],
            registry=own,
        )  # fmt: skip
        self._seconds = Histogram(
            "recollect_http_request_seconds", "How long requests took.", ["route"],
            buckets=_SECONDS, registry=own,
        )  # fmt: skip
        self._limited = Counter(
            "recollect_rate_limited", "Requests refused for being too many.", registry=own
        )
        self._recalls = Counter(
            "recollect_recalls", "Questions asked, by what came of them.", ["status"], registry=own
        )
        self._writes = Counter(
            "recollect_writes", "Changes made, by operation.", ["operation"], registry=own
        )
        self._degraded = Counter(
            "recollect_degraded", "Answers for which a part could not do its work.", ["part"],
            registry=own,
        )  # fmt: skip
        version = Gauge("recollect_build_info", "The version.", ["version"], registry=own)
        version.labels(__version__).set(1)

    def text(self) -> bytes:
        """All figures, as Prometheus reads them."""
        return generate_latest(self._all)

    def answered(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Counts a request. What is no route of ours is one label: anybody can make more up."""
        route = scope.get(ROUTE, "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        # Who went away before there was an answer has none.
        self._requests.labels(route, method, str(status or "none")).inc()
        if is_brief(scope):
            self._seconds.labels(route).observe(seconds)
        if status == 429:
            self._limited.inc()

    def wrote(self, operation: str) -> None:
        """Counts a change."""
        self._writes.labels(operation).inc()

    @contextmanager
    def watch(self, asked: Asked, _: str) -> Iterator[Callable[[Json], None]]:
        """Counts what a tool does."""
        yield lambda content: self._count(asked, content)

    def _count(self, asked: Asked, content: Json) -> None:
        if asked.tool.name == "recall":
            self._recalls.labels(content["status"]).inc()
            for part in content["degraded"]:
                self._degraded.labels(part["part"]).inc()
        elif not asked.tool.reads:
            self.wrote(asked.tool.name)
