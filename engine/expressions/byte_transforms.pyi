import pyarrow as pa

def transform(values: pa.Array, name: str) -> pa.Array:
    """Return binary values under a transformation, as large binary; ArrowInvalid where one cannot be decoded."""

def fold_words(values: pa.Array, hashes: pa.Array) -> pa.Array:
    """Return the hashes of int32 or int64 values, seeded with hashes so far."""

def fold_bytes(values: pa.Array, hashes: pa.Array) -> pa.Array:
    """Return the hashes of binary values, seeded with hashes so far."""

def checksums(values: pa.Array) -> pa.Array:
    """Return the CRC-32 of binary values, as int64."""
