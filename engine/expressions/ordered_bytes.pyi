import pyarrow as pa

UNSIGNED: int
SIGNED: int
KEY_FLOAT: int
VALUE_FLOAT: int

def put_ordered(values: pa.Array, kind: int, inverted: bool, out: pa.Buffer, stride: int, at: int) -> None:
    """Write an array of numbers into the rows of a buffer."""

def get_ordered(rows: pa.Array, stride: int, at: int, width: int, kind: int) -> pa.Buffer:
    """Return the numbers at a byte of the rows of a fixed-size binary array."""

def put_before(words: pa.Buffer, width: int, texts: pa.Array) -> pa.Array:
    """Return the word of each row with its text behind it."""

def texts_behind(rows: pa.Array, width: int) -> tuple[pa.Buffer, pa.Buffer]:
    """Return offsets and bytes of what is behind the word of each row."""
