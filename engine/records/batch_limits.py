"""How large a batch is at most, single rows excepted: small enough for the memory promise, large enough for its costs.

Held by: tests/functions/test_function_output.py
"""

from __future__ import annotations

from typing import Final

BATCH_ROWS_MAX: Final = 8192
BATCH_BYTES_MAX: Final = 1 << 20
