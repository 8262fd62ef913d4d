"""A service that does not answer is not asked for a while."""

from __future__ import annotations

import threading

import pytest

from bethink.errors import ModelError, Refused
from bethink.models.http import CircuitBreaker


class Ticking:
    """A clock that stands until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Service:
    """Fails while it is told to, and counts how often it was asked."""

    def __init__(self) -> None:
        self.is_down, self.asked = True, 0

    def __call__(self) -> str:
        self.asked += 1
        if self.is_down:
            raise ModelError(f"down, {self.asked}", remedy="wait")
        return "fine"


@pytest.fixture
def clock():
    return Ticking()


@pytest.fixture
def service():
    return Service()


@pytest.fixture
def breaker(clock):
    return CircuitBreaker(clock=clock)


def fail(breaker: CircuitBreaker, service: Service) -> ModelError:
    with pytest.raises(ModelError) as caught:
        breaker(service)
    return caught.value


def test_what_works_is_passed_on(breaker, service):
    """Every time."""
    service.is_down = False

    assert [breaker(service) for _ in range(5)] == ["fine"] * 5
    assert service.asked == 5


def test_after_a_failure_one_recall_waits_once(breaker, service, clock):
    """For a moment the same failure is the answer, with its remedy; then it is asked again."""
    first = fail(breaker, service)
    again = fail(breaker, service)
    clock.now += 1.0
    later = fail(breaker, service)

    assert (first.message, again.message, later.message) == ("down, 1", "down, 1", "down, 2")
    assert again.remedy == "wait"
    assert service.asked == 2


def test_after_three_failures_it_rests(breaker, service, clock):
    """For thirty seconds nobody is asked; then one try decides."""
    for _ in range(3):
        fail(breaker, service)
        clock.now += 1.0
    clock.now += 28.9

    fail(breaker, service)
    assert service.asked == 3

    clock.now += 0.2
    fail(breaker, service)
    assert service.asked == 4
    clock.now += 29.0
    fail(breaker, service)
    assert service.asked == 4

    clock.now += 1.1
    service.is_down = False
    assert [breaker(service) for _ in range(2)] == ["fine"] * 2


def test_a_success_wipes_the_slate(breaker, service, clock):
    """Failures count in a row only."""
    for _ in range(2):
        fail(breaker, service)
        clock.now += 1.0
    service.is_down = False
    breaker(service)
    service.is_down = True

    fail(breaker, service)
    clock.now += 1.0
    fail(breaker, service)

    assert service.asked == 5


def test_a_refused_text_is_nobodys_failure(breaker):
    """Only the service's own errors count."""

    def refuse() -> None:
        raise Refused("half a character")

    for _ in range(5):
        with pytest.raises(Refused):
            breaker(refuse)


def test_only_one_try_at_a_time_decides(breaker, service, clock):
    """While the first call after a rest is under way, others are not passed on."""
    for _ in range(3):
        fail(breaker, service)
        clock.now += 1.0
    clock.now += 30.0
    entered, leave = threading.Event(), threading.Event()

    def slow() -> str:
        entered.set()
        assert leave.wait(60)
        return "fine"

    answers: list[str] = []
    trying = threading.Thread(target=lambda: answers.append(breaker(slow)))
    trying.start()
    assert entered.wait(60)
    fail(breaker, service)
    leave.set()
    trying.join()

    assert answers == ["fine"]
    assert service.asked == 3
