"""How large a batch is at most, but for a single row: what memory promises count with, and still worth a call.

Held by: tests/functions/test_function_output.py
"""

from __future__ import annotations

from typing import Final

BATCH_ROWS_MAX: Final = 8192
BATCH_BYTES_MAX: Final = 1 << 20
