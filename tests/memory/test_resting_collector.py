"""RestingCollector: off from the first user to the last, and on again then, unless other code has switched it off."""

import gc

import pytest

from engine.memory.heap import RestingCollector


@pytest.fixture(autouse=True)
def collecting():
    was_on = gc.isenabled()
    gc.enable()
    yield
    if not was_on:
        gc.disable()


def test_it_rests_until_the_last_user_has_left():
    resting = RestingCollector()
    with pytest.raises(ValueError), resting:
        with resting:
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ValueError
    assert gc.isenabled()


def test_what_was_made_meanwhile_is_old_and_collected_all_the_same():
    class Cycle:
        alive = 0

        def __init__(self):
            Cycle.alive += 1
            self.itself = self

        def __del__(self):
            Cycle.alive -= 1

    gc.unfreeze()
    with RestingCollector():
        Cycle()
    gc.collect(1)
    assert Cycle.alive == 1
    gc.collect()
    assert Cycle.alive == 0


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    with RestingCollector():
        pass
    assert not gc.isenabled()
    gc.enable()
