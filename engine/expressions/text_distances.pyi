import pyarrow as pa

def levenshtein(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the edits between texts of two binary arrays, row by row."""

def jaro(left: pa.Array, right: pa.Array, prefix_share: float) -> pa.Array:
    """Return the similarities of texts of two binary arrays, with a share for each character of a common beginning."""
