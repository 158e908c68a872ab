"""What one test has refused, the next one has not."""

from __future__ import annotations

import pytest

from engine.rpc import http_server
from engine.rpc.refusals import Refusals


@pytest.fixture(autouse=True)
def refusals(monkeypatch):
    fresh = Refusals()
    monkeypatch.setattr(http_server, "REFUSALS", fresh)
    return fresh
