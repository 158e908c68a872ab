"""``merge_into``: the call of DataSet that merges its rows into a table (``merge_plan.py``).

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.api.calls import Calls
from engine.api.other_options import with_other_options
from engine.errors import NotYetSupportedError
from engine.storage.store_client import use_store_settings

if TYPE_CHECKING:
    from engine.api.merge_clauses import Clause
    from engine.api.merge_plan import MergeResult
    from engine.formats.table_target import TableTarget


@with_other_options
class MergeCalls(Calls):
    """Base of DataSet with its merges."""

    def merge_into(
        self,
        target: TableTarget,
        on: str | Sequence[str],
        when_matched: Clause = "update",
        when_not_matched: Clause = "insert",
        when_not_matched_by_source: Clause = "ignore",
    ) -> MergeResult:
        """Merge these rows into a table at once, by one commit.

        ``target``: ``delta("folder")`` or ``iceberg("db.name", catalog)``. ``on``: key columns of both sides.
        ``when_matched``: "update" takes the values of these rows, "delete", "ignore", or a dict:
        ``{"set": {"price": col("source.price")}, "where": condition}`` or ``{"delete": True, "where": condition}``;
        with "set" and a condition as "delete", rows that meet it go, and the others are updated.
        ``when_not_matched``: "insert", "ignore", or ``{"values": {...}, "where": condition}``.
        ``when_not_matched_by_source``, for rows of the table alone: "ignore", "delete", or a dict as of
        ``when_matched``. Expressions name columns ``source.x`` and ``target.x``. Two of these rows with the key of one
        row of the table are a DataError; null keys match nothing.
        """
        from engine.api.merge_plan import merged

        if self._environment.target == "spark":
            raise NotYetSupportedError("merge_into on target spark; run it on local or cluster")
        use_store_settings(self._environment.configuration.storage_texts())
        keys = (on,) if isinstance(on, str) else tuple(on)
        return merged(self, target, keys, (when_matched, when_not_matched, when_not_matched_by_source))
