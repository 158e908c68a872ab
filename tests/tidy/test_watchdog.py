"""A test that hangs in native code ends the run, with the stack of where it hangs."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HANGING = """
import ctypes
import pytest

@pytest.mark.timeout(2)
def test_waits_where_no_signal_is_handled():
    ctypes.CDLL(None).sigsuspend(ctypes.create_string_buffer(b"\\xff" * 128))  # every signal is blocked meanwhile
"""


def test_a_hang_in_native_code_ends_the_run_and_shows_where(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "from tests import watchdog\nfrom tests.conftest import pytest_runtest_protocol\n"
        "watchdog._GRACE_S = 0.5\npytest_configure = watchdog.begin\n"
    )
    (tmp_path / "test_hanging.py").write_text(HANGING)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 1
    assert "test_waits_where_no_signal_is_handled" in run.stderr
    assert "Timeout" in run.stderr
