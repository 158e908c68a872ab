"""Errors of components become answers; ids and numbers of strangers are checked."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from engine.errors import FencedError, JobNotFoundError, LogNotFoundError, ResourceError
from engine.gateways.messages import SubmitJob
from engine.rest.services import decoded, explained, job_id_of, number_of
from engine.rpc.errors import EndpointUnreachableError, RpcTimeoutError
from engine.rpc.http_messages import HttpError, HttpRequest


def request(variables=None, query=None):
    return HttpRequest("GET", "/", variables or {}, query or {}, {})


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (JobNotFoundError("no job"), 404),
        (LogNotFoundError("no log"), 404),
        (ResourceError("this JobManager does not lead"), 503),
        (EndpointUnreachableError("nothing answers"), 503),
        (FencedError(2, 1), 503),
        (RpcTimeoutError("no answer"), 504),
        (HttpError(409, "too late"), 409),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_what_a_component_raises_is_told_with_its_words(error, status):
    async def fail(_):
        raise error

    with pytest.raises(HttpError) as told:
        asyncio.run(explained(fail)(request()))
    assert told.value.status == status and str(told.value) == str(error)


def test_what_nobody_foresaw_stays_what_it_is():
    async def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(explained(fail)(request()))


@pytest.mark.parametrize("text", ["", "f" * 31, "f" * 33, "F" * 32, "g" * 32, "../" + "0" * 29, "٣" * 32])
def test_a_job_id_is_32_hexadecimal_digits_and_nothing_else(text):
    with pytest.raises(HttpError, match="32 digits"):
        job_id_of(request({"job_id": text}))


@pytest.mark.parametrize("text", ["", "x", "-1", "61", "nan", "inf", "1e9"])
def test_a_number_lies_within_its_bounds(text):
    with pytest.raises(HttpError):
        number_of(request(query={"wait": text}), "wait", 0.0, 60.0)


def test_numbers_have_a_default():
    assert number_of(request(), "wait", 2.5, 60.0) == 2.5
    assert number_of(request(query={"wait": "7"}), "wait", 0.0, 60.0) == 7.0


def test_a_job_manager_loads_neither_arrow_nor_pickles():
    code = (
        "import sys, engine.rest.routes, engine.insight.process_insight\n"
        "print(sorted({'pyarrow', 'cloudpickle', 'numpy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x81\xa1\xff\x00", b"\xa1\xff", b"\x91" * 5000, b"\x81\xa9job_graph" + b"\x91" * 5000]
)
def test_a_body_that_is_no_message_is_the_fault_of_its_sender(body):
    with pytest.raises(HttpError) as told:
        decoded(body, SubmitJob)
    assert told.value.status == 400
