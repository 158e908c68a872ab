import pyarrow as pa

def exact_between(low: pa.Array, high: pa.Array, fraction: pa.Array, scale: int) -> pa.Array:
    """Return the numbers that are a fraction of the way from one to another, both of one scale."""
