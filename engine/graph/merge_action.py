"""The columns of rows that a merge sends to a sink, by which it knows what becomes of them; they are not written.

    ACTION       KEPT, INSERTED, UPDATED, DELETED, PREIMAGE
    FILE         with merges that delete rows by their places: the file of the row that an UPDATED or DELETED one is of,
    POSITION     and its place there; a row that is UPDATED is written as a new one then, and the old one deleted

Merges that write files anew with the rows that change alone ("patches") have the number of a file in FILE, and in ORDER
what puts these rows in the order of their places.

Rows of tables that give them ids have these in ROW_ID where they move into other files, and in CHANGED_AT the sequence
number of their last change, null where it is the one that moves them. Both are written, by their names in Iceberg.

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from typing import Final

ACTION: Final = "merge action"
FILE: Final = "target file"
POSITION: Final = "target position"
ORDER: Final = "number of the change"
ROW_ID: Final = "_row_id"
CHANGED_AT: Final = "_last_updated_sequence_number"
#: a row as it was, a new one, one with other values, and one that goes, which is not written
KEPT, INSERTED, UPDATED, DELETED = range(4)
#: a row of the source alone, which no clause wants; it reaches no sink
IGNORED = 4
#: a row as it was before an update, for tables that keep their changes; it is written beside them alone
PREIMAGE = 5
#: facts of an output, by action
COUNTED: Final = {INSERTED: "rows_inserted", UPDATED: "rows_updated", DELETED: "rows_deleted"}
