import pyarrow as pa

def sliced(texts: pa.Array, start: int, stop: int | None) -> pa.Array:
    """Return the characters from ``start`` up to ``stop`` of each text; those below 0 count from the end."""
