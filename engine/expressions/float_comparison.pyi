import pyarrow as pa

def comparison_bits(left: pa.Array, right: pa.Array, function: str) -> pa.Array:
    """Return where the function holds, as an array of bools without nulls."""
