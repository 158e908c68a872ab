class RowRouter:
    """Takes rows out of an input's pages before they are decoded."""

    row_count: int
    size_bytes: int
    takes_all: bool
