"""Wide values beside their rows, as Python sees them."""

def set_outside_bytes(size: int | None = None) -> None:
    """Set from how many bytes on values lie outside (None: the default); for tests."""
