import pyarrow as pa

def add_months(days: pa.Array, months: pa.Array) -> pa.Array:
    """Return days that many months later."""

def month_places(days: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the month of each day as a number, and its index in the month, from 0."""

def days_of_dates(years: pa.Array, months: pa.Array, days: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the days of dates, and whether there are such dates."""

def business_marks(days: pa.Array, bits: int, holidays: pa.Array) -> pa.Array:
    """Return 1 for business days, 0 for others, as int8."""

def business_counts(begins: pa.Array, ends: pa.Array, bits: int, holidays: pa.Array) -> pa.Array:
    """Return the numbers of business days from days, which count, to others, which do not; negative backward."""

def moved_by_business_days(
    days: pa.Array, counts: pa.Array, bits: int, holidays: pa.Array, is_forward: bool
) -> pa.Array:
    """Return days moved by business days; one that is none goes forward or backward to the next one before."""
