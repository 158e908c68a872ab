"""The last resort against a test that waits in native code, where no time-out's signal is handled: the run ends there.

pytest-timeout ends a test from its main thread, when that executes Python. Some time after its limit all stacks are
shown here and the process exits, rather than to wait for somebody to come and look.
"""

import contextlib
import faulthandler
import os

import pytest

_GRACE_S = 120.0
_descriptor = pytest.StashKey[int]()


def begin(config):
    """Keep the error output as it is now, while nothing is captured."""
    config.stash[_descriptor] = os.dup(2)


def limit_s(item):
    """Seconds that pytest-timeout gives the item: its marker's, the command line's, or the configuration's; 0: any."""
    marker = item.get_closest_marker("timeout")
    if marker is not None and marker.args:
        return float(marker.args[0])
    given = item.config.getoption("timeout")
    return float(item.config.getini("timeout") if given is None else given)


@contextlib.contextmanager
def watched(item):
    """End the process when the item takes much longer than it may."""
    limit = limit_s(item)
    if limit > 0:
        faulthandler.dump_traceback_later(limit + _GRACE_S, exit=True, file=item.config.stash[_descriptor])
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
