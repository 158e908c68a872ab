"""The fixture of operators that work in pages and spill."""

from tests.workshop import workshop

__all__ = ["workshop"]
