from typing import final

@final
class StateBinding:
    """The binding of states to input columns and operations."""

@final
class GroupInput:
    """An Arrow batch opened for a group table."""

    row_count: int
