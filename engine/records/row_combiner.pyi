class RowCombiner:
    """Makes one row of two that have the same keys."""
