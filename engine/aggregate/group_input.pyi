from typing import final

@final
class StateBinding:
    """Which input column each state reads, and by which operation."""

@final
class GroupInput:
    """An Arrow batch opened for a group table."""

    row_count: int
