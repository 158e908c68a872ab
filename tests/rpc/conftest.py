"""What one test has refused, the next one has not; and calls in both ways."""

from __future__ import annotations

import functools

import pytest

from engine.rpc import calling_requests, http_server
from engine.rpc.refusals import Refusals
from tests.rpc import calls


@pytest.fixture(autouse=True)
def refusals(monkeypatch):
    fresh = Refusals()
    monkeypatch.setattr(http_server, "REFUSALS", fresh)
    return fresh


@pytest.fixture(params=["frames", "requests"])
def run(request, monkeypatch):
    """Run a scenario with calls of one way."""
    monkeypatch.setattr(calling_requests, "_KNOWN_S", 3600.0)
    return functools.partial(calls.run, way=request.param)
