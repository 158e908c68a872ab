import pyarrow as pa

def translated(values: pa.Array, sources: list[int], targets: list[int]) -> pa.Array:
    """Return texts with characters replaced by others; a target of -1 leaves the character out."""

def texts_of_codes(codes: pa.Array) -> pa.Array:
    """Return the character of each code; ArrowInvalid where there is none. There are no nulls."""

def first_codes(values: pa.Array) -> pa.Array:
    """Return the code of the first character of each text, 0 of an empty one."""

def digits_of(values: pa.Array, bits: int) -> pa.Array:
    """Return the bits of int64 values in digits of so many bits, without zeros in front; negative ones have all 64."""

def integers_of(values: pa.Array, base: int) -> tuple[pa.Array, pa.Array]:
    """Return the numbers that texts are in a base, and whether each is one, as int8."""
