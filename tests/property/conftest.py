"""One embedded cluster for each (parallelism, memory); the module's end looks for leaks, as in tests/integration."""

import zlib

import pytest

from tests.integration.conftest import (  # noqa: F401
    nothing_is_left_behind,
    nothing_is_left_by_the_module,
    open_environment,
)

#: of the cases of a matrix one in so many is quick
_QUICK_SHARE = 6


def pytest_collection_modifyitems(items):
    for item in items:
        is_case = hasattr(item, "callspec") and "case" in item.callspec.params and item.path.parent.name == "property"
        if is_case and zlib.crc32(item.nodeid.encode()) % _QUICK_SHARE:
            item.add_marker(pytest.mark.thorough)
