"""Fixtures of other rooms: an exchange that is checked for leaks, and certificates."""

from __future__ import annotations

from tests.exchange.conftest import world  # noqa: F401 - fixture
from tests.rpc.test_tls import foreign, own  # noqa: F401 - fixtures
