"""One zygote for all tests of a module that run functions: each imports Arrow, which takes longer than most tests.

A module says ``pytestmark = pytest.mark.usefixtures("one_zygote")``. Runners of its tests have workers of their own, as
ever, and leave the process that these are forked from alone. Tests of zygotes themselves have their own, and so has
what runs as another user.
"""

from contextlib import closing

import pytest


class _Shared:
    """What a runner has of a zygote that outlives it."""

    def __init__(self, zygote):
        self.fork = zygote.fork

    @property
    def has_ended(self):
        return self.fork.__self__.has_ended

    def close(self):
        """Leave the zygote to the next runner."""


@pytest.fixture(scope="module")
def one_zygote():
    """Let runners take their workers from one zygote, which has imported all that it imports."""
    from engine.functions import worker_process

    own = worker_process.Zygote
    with closing(own()) as zygote, pytest.MonkeyPatch.context() as patch:
        worker = zygote.fork()
        worker.kill()
        worker.reap()
        patch.setattr(worker_process, "Zygote", lambda user="": own(user) if user else _Shared(zygote))
        yield
