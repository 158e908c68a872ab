"""The states of a result partition as a table, and what a producer hears that is too late."""

from __future__ import annotations

import pytest

from engine.errors import (
    DiskFullError,
    IllegalTransitionError,
    PartitionReleasedError,
    ProducerFailedError,
    TaskCancelledError,
)
from engine.exchange.partition_life import TRANSITIONS, PartitionLife, PartitionState
from tests.exchange.world import partition_id

PRODUCING, FINISHED, FAILED, RELEASED, CANCELLED = PartitionState
#: a way from the beginning to each state
WAYS = {PRODUCING: (), FINISHED: (FINISHED,), FAILED: (FAILED,), RELEASED: (RELEASED,), CANCELLED: (CANCELLED,)}


def life_in(state: PartitionState) -> PartitionLife:
    life = PartitionLife(partition_id())
    assert all(life.move(step) for step in WAYS[state])
    return life


@pytest.mark.parametrize("state", PartitionState)
def test_only_the_moves_of_the_table_are_made(state: PartitionState) -> None:
    for target in PartitionState:
        life = life_in(state)
        assert life.move(target) is (target in TRANSITIONS[state])
        assert life.state is (target if target in TRANSITIONS[state] else state)


def test_nothing_leads_back_and_everything_can_be_cancelled() -> None:
    order = list(PartitionState)
    assert all(order.index(target) > order.index(state) for state in order for target in TRANSITIONS[state])
    assert all(CANCELLED in TRANSITIONS[state] for state in order if state is not CANCELLED)


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (FINISHED, IllegalTransitionError),
        (FAILED, IllegalTransitionError),
        (RELEASED, PartitionReleasedError),
        (CANCELLED, TaskCancelledError),
    ],
)
def test_a_producer_that_is_too_late_hears_how_the_partition_ended(
    state: PartitionState, error: type[Exception]
) -> None:
    life = life_in(state)
    for ask in (life.check_producing, life.finish):
        with pytest.raises(error, match=str(life.id)):
            ask()
    assert life.state is state


def test_one_that_is_released_and_then_cancelled_counts_as_cancelled() -> None:
    life = life_in(RELEASED)
    life.move(CANCELLED)
    with pytest.raises(TaskCancelledError):
        life.check_producing()


@pytest.mark.parametrize("below", [PartitionReleasedError, IllegalTransitionError, ProducerFailedError])
def test_an_error_from_below_says_that_the_partition_was_cancelled(below: type[Exception]) -> None:
    life = life_in(CANCELLED)
    with pytest.raises(TaskCancelledError), life:
        raise below("the queue is closed")


@pytest.mark.parametrize("error", [DiskFullError, ValueError, KeyboardInterrupt])
def test_an_error_that_is_no_end_stays_what_it_is(error: type[BaseException]) -> None:
    life = life_in(CANCELLED)
    with pytest.raises(error), life:
        raise error("x")


@pytest.mark.parametrize("state", [PRODUCING, FINISHED])
def test_an_error_from_below_stays_while_the_partition_is_produced_or_ends(state: PartitionState) -> None:
    with pytest.raises(PartitionReleasedError, match="queue"), life_in(state):
        raise PartitionReleasedError("the queue is closed")


@pytest.mark.parametrize("state", PartitionState)
def test_what_is_released_or_cancelled_cannot_be_read(state: PartitionState) -> None:
    life = life_in(state)
    if not life.is_gone:
        life.check_readable()
        return
    with pytest.raises(PartitionReleasedError) as raised:
        life.check_readable()
    assert raised.value.partition == life.id
