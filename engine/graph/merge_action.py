"""The actions of a merge: the numbers in the column by which a sink knows what becomes of a row.

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from typing import Final

#: a row as it was, a new one, one with other values, and one that goes, which is not written
KEPT, INSERTED, UPDATED, DELETED = range(4)
#: facts of an output, by action
COUNTED: Final = {INSERTED: "rows_inserted", UPDATED: "rows_updated", DELETED: "rows_deleted"}
