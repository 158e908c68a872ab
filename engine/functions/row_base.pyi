from typing import Any

class RowBase(tuple[Any, ...]):
    def __getitem__(self, key: Any) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

def item_member(row_class: type[RowBase], name: str, position: int) -> Any:
    """Return the attribute of a row class that reads the item at a position."""
