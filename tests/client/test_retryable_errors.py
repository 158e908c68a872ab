"""Which errors a new attempt may mend: every class of the engine, one by one."""

import inspect

import pytest

from engine import errors
from engine.errors import EngineError
from engine.gateways.failure_info import failure_info
from engine.rpc import errors as rpc_errors

RETRIED = {
    "ResourceError",
    "SpillError",
    "DiskFullError",
    "CorruptBlockError",
    "PartitionNotFoundError",
    "PartitionReleasedError",
    "PartitionConnectionError",
    "ProducerFailedError",
    "SlotTimeoutError",
    "MachineLimitError",
    "RpcTimeoutError",
    "EndpointUnreachableError",
    "UntrustedReplyError",  # as if nobody had answered
}
CLASSES = {
    name: value
    for module in (errors, rpc_errors)
    for name, value in vars(module).items()
    if inspect.isclass(value) and issubclass(value, EngineError)
}


def test_what_is_retried_exists():
    assert CLASSES.keys() >= RETRIED


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_lost_processes_partitions_connections_and_disks_are_retried_and_nothing_else(name):
    assert CLASSES[name].retryable is (name in RETRIED)


@pytest.mark.parametrize(
    "error", [ValueError("a user's"), KeyError("x"), MemoryError(), OSError("x"), RecursionError()]
)
def test_what_is_no_error_of_the_engine_is_not_retried(error):
    assert not failure_info(error).retryable


def test_an_error_that_was_not_raised_has_no_traceback_that_says_it_again():
    assert failure_info(errors.LimitExceededError("too much")).details == ""
    try:
        raise errors.LimitExceededError("too much")
    except errors.LimitExceededError as error:
        assert failure_info(error).details.startswith("Traceback")
