import pyarrow as pa

def cube_roots(values: pa.Array) -> pa.Array:
    """Return the cube roots of a float64 array."""

def rounded(values: pa.Array, digits: int) -> pa.Array:
    """Return a float64 array rounded to digits behind the point, or before it where they are negative."""

def bit_counts(values: pa.Array) -> pa.Array:
    """Return the number of bits of each int64 that are set."""
