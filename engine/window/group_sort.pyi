import pyarrow as pa

def sorted_in_groups(
    values: pa.Array, order: pa.Array, bounds: pa.Array, descending: bool, nulls_last: bool
) -> pa.Array: ...
