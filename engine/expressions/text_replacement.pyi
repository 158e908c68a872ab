import pyarrow as pa

def with_replaced(texts: pa.Array, places: pa.StructArray, pieces: list[bytes | int]) -> pa.Array:
    """Return texts with pieces in the place of what was found in each of them; pieces: see the header."""
