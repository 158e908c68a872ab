import pyarrow as pa

def group_quantiles(
    values: pa.Array, order: pa.Array, bounds: pa.Array, share: float
) -> tuple[pa.Array, pa.Array, pa.Array]: ...
