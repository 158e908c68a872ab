"""``engine.closing``: every step runs, the first error is raised, none is lost."""

import asyncio
import traceback

import pytest

from engine.closing import close_all, close_all_async


class Steps:
    def __init__(self):
        self.ran = []

    def step(self, name, error=None):
        def run():
            self.ran.append(name)
            if error is not None:
                raise error

        return run

    def awaited(self, name, error=None):
        async def run():
            self.ran.append(name)
            await asyncio.sleep(0)
            if error is not None:
                raise error

        return run


def test_nothing_is_raised_when_every_step_succeeds():
    steps = Steps()
    close_all([steps.step("a"), steps.step("b")])
    assert steps.ran == ["a", "b"]
    close_all([])


def test_every_step_runs_and_the_first_error_carries_the_others_as_notes():
    steps = Steps()
    with pytest.raises(OSError, match="first") as caught:
        close_all(
            [
                steps.step("a"),
                steps.step("b", OSError("first")),
                steps.step("c", ValueError("second")),
                steps.step("d", KeyboardInterrupt()),
                steps.step("e"),
            ]
        )
    assert steps.ran == ["a", "b", "c", "d", "e"]
    second, third = caught.value.__notes__
    assert "ValueError: second" in second
    assert "KeyboardInterrupt" in third
    assert "ValueError: second" in "".join(traceback.format_exception(caught.value))


def test_one_error_that_two_steps_raise_carries_no_note_of_itself():
    error = OSError("one")
    with pytest.raises(OSError, match="one") as caught:
        close_all([Steps().step("a", error), Steps().step("b", error)])
    assert not hasattr(caught.value, "__notes__")


def test_steps_that_are_awaited_and_steps_that_are_not_all_run(caplog):
    steps = Steps()
    with pytest.raises(OSError, match="first") as caught:
        asyncio.run(
            close_all_async(
                [
                    steps.awaited("a", OSError("first")),
                    steps.step("b", ValueError("second")),
                    steps.awaited("c"),
                    steps.step("d"),
                ]
            )
        )
    assert steps.ran == ["a", "b", "c", "d"]
    assert "ValueError: second" in caught.value.__notes__[0]
    assert [record.exc_info[1].args for record in caplog.records] == [("first",), ("second",)]


def test_cancelling_the_caller_breaks_off_between_steps_that_are_awaited():
    steps = Steps()

    async def never_ends():
        steps.ran.append("waits")
        await asyncio.Event().wait()

    async def stop_in_time():
        await asyncio.wait_for(close_all_async([never_ends, steps.awaited("after")]), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(stop_in_time())
    assert steps.ran == ["waits"]
