import pyarrow as pa

def add_months(days: pa.Array, months: pa.Array) -> pa.Array:
    """Return days that many months later."""

def month_places(days: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the month of each day as a number, and its index in the month, from 0."""
