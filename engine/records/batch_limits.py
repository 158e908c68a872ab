"""Limits of batches, single rows excepted: small enough for the memory limit, large enough for low overhead.

Held by: tests/functions/test_function_output.py
"""

from __future__ import annotations

from typing import Final

BATCH_ROWS_MAX: Final = 8192
BATCH_BYTES_MAX: Final = 1 << 20
#: limit for data that has Arrow's form already: it is not copied, so only the cost per batch counts
ARROW_ROWS_MAX: Final = 4 * BATCH_ROWS_MAX
