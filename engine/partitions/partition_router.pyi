from typing import Self, final

from engine.partitions.row_partitions import RowPartitions
from engine.records.row_codec import RowCodec
from engine.records.row_router import RowRouter

@final
class PartitionRouter(RowRouter):
    """Takes rows of pages to their partitions (see partition_router.pyx)."""

    def __new__(cls, codec: RowCodec) -> Self: ...
    def begin(self, target: RowPartitions) -> None: ...
    def end(self) -> None: ...
