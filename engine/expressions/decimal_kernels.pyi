import pyarrow as pa

def remainders(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the floored remainders of two decimal256 arrays of one type; ArrowInvalid where a divisor is 0."""

def quotients(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the floored quotients of two decimal256 arrays of one type; ArrowInvalid where a divisor is 0."""
