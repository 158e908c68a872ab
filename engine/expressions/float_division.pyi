import pyarrow as pa

def floor_quotients(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the quotients of two float64 arrays, rounded down."""
