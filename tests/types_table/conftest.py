"""One environment for all cells of a module."""

from tests.integration.conftest import nothing_is_left_behind, nothing_is_left_by_the_module, open_environment

__all__ = ["nothing_is_left_behind", "nothing_is_left_by_the_module", "open_environment"]
