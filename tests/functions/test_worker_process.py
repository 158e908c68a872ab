"""The process that workers are forked from."""

import os

from engine.functions.worker_process import Zygote


def test_ctrl_c_in_a_terminal_reaches_no_worker():
    """A terminal signals a whole group; a worker that is still loading would show where it was."""
    zygote = Zygote()
    try:
        worker = zygote.fork()
        assert os.getpgid(worker.pid) != os.getpgid(0)
        worker.kill()
        assert worker.reap() == -9
    finally:
        zygote.close()
