import pyarrow as pa

def cube_roots(values: pa.Array) -> pa.Array:
    """Return the cube roots of a float64 array."""
