"""One embedded cluster for each (parallelism, memory); the module's end looks for leaks, as in tests/integration."""

from tests.integration.conftest import (  # noqa: F401
    nothing_is_left_behind,
    nothing_is_left_by_the_module,
    open_environment,
)
