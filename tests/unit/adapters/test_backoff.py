import pytest

from knowledge.adapters.backoff import TransientFailureError
from knowledge.errors import DependencyUnavailable
from tests.unit.adapters.network import FakeTime


class Service:
    """Fails as scripted, then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.tries = 0

    def __call__(self) -> str:
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


def failure(*, wait_s: float = 0.0) -> TransientFailureError:
    return TransientFailureError(DependencyUnavailable("service", "failed"), wait_s=wait_s)


def test_it_waits_longer_from_try_to_try() -> None:
    time, service = FakeTime(), Service(failure(), failure(), failure())
    assert time.backoff().run(service) == "answer"
    assert time.waits_s == pytest.approx([0.2, 0.4, 0.8])


def test_it_gives_up_after_a_few_tries() -> None:
    time, service = FakeTime(), Service(*(failure() for _ in range(100)))
    with pytest.raises(DependencyUnavailable, match="service: failed"):
        time.backoff(jitter=0.5).run(service)
    assert service.tries == 5
    assert sum(time.waits_s) == pytest.approx(1.5)


def test_it_begins_no_try_after_its_time() -> None:
    time, service = FakeTime(), Service(*(failure() for _ in range(100)))
    with pytest.raises(DependencyUnavailable):
        time.backoff(retry_s=1.0).run(service)
    assert time.waits_s == pytest.approx([0.2, 0.4])


def test_it_waits_as_long_as_the_service_asks() -> None:
    time = FakeTime()
    assert time.backoff().run(Service(failure(wait_s=2.0))) == "answer"
    assert time.waits_s == [2.0]


def test_it_does_not_try_again_before_the_service_wants_it() -> None:
    time, service = FakeTime(), Service(failure(wait_s=60.0))
    with pytest.raises(DependencyUnavailable):
        time.backoff().run(service)
    assert (service.tries, time.waits_s) == (1, [])


def test_the_outcome_keeps_its_cause() -> None:
    cause = OSError("cut")
    scripted = failure()
    scripted.__cause__ = cause
    with pytest.raises(DependencyUnavailable) as caught:
        FakeTime().backoff(retry_s=0.0).run(Service(scripted))
    assert caught.value.__cause__ is cause


def test_other_errors_pass_at_once() -> None:
    service = Service(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        FakeTime().backoff().run(service)
    assert service.tries == 1
