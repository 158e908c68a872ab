import pyarrow as pa

def comparison_bits(left: pa.Array, right: pa.Array, function: str) -> pa.Array:
    """Return an array of bools without nulls: the rows where the function holds."""
