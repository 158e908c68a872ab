"""How large a batch is at most, single rows excepted: small enough for the memory promise, large enough for its costs.

Held by: tests/functions/test_function_output.py
"""

from __future__ import annotations

from typing import Final

BATCH_ROWS_MAX: Final = 8192
BATCH_BYTES_MAX: Final = 1 << 20
#: of data that lies in Arrow's form already: nothing is made of it, so only the costs of a batch count
ARROW_ROWS_MAX: Final = 4 * BATCH_ROWS_MAX
