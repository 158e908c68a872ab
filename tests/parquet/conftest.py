"""What readers of wide and many columns use."""

import pytest

from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_identity import SpillIdentity


@pytest.fixture
def new_space(tmp_path):
    """Give new spill spaces; all of their files must be gone at the end."""
    (tmp_path / "spill").mkdir()
    with IOManager([str(tmp_path / "spill")]) as manager:
        yield lambda: manager.space(SpillIdentity("job", 1, 0, 0))
        assert not list((tmp_path / "spill").rglob("*.spill"))
