from typing import final

import pyarrow as pa

CYCLE_SECONDS: int

def beyond(values: pa.Array, limit: int) -> bool:
    """Return whether a value of an int64 or int32 array lies beyond -limit or limit."""

@final
class ZoneOffsets:
    """The offset of local time from UTC, for any point in time."""

    def __new__(cls, starts: list[int], offsets: list[int], cycle_from: int | None) -> ZoneOffsets: ...
    def offsets(self, values: pa.Array, per_second: int) -> pa.Array:
        """Return the offsets of moments, in their own unit."""
    def places(self, values: pa.Array, per_second: int) -> pa.Array:
        """Return the places of the offsets of moments in the table, from 0."""
    def instants(self, local: pa.Array, per_second: int) -> pa.Array:
        """Return the first moments of local times, which are whole seconds."""
