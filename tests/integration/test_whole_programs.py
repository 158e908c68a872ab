"""Random programs over the whole interface against plain Python. ``TORTURE=1``: hundreds of them."""

import os
import random

import pytest

from tests.integration.whole_programs import WholeProgram

PROGRAMS = 1500 if os.environ.get("TORTURE") == "1" else 24
CONFIGURATIONS = [
    {"parallelism.default": 1, "debug.force-spill": True},
    {"parallelism.default": 2, "execution.mode": "BATCH"},
    {"parallelism.default": 3, "execution.batch.adaptive.enabled": False, "taskmanager.memory.managed.size": "4mb"},
    {"parallelism.default": 5, "debug.force-spill": True, "taskmanager.memory.managed.size": "2mb"},
]
#: what parts of a plan in one subtask read: nothing, some tables, all
SMALL_PART_SIZES = ["0b", "300b", "1kb", "4kb", "1mb"]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_random_program_of_everything_gives_the_rows_of_plain_python(open_environment, tmp_path, seed):
    chance = random.Random(f"whole {seed}")
    where = "thread" if seed % 5 else "process"
    size = chance.choice(SMALL_PART_SIZES)
    settings = {"python.execution-mode": where, "debug.small-part-size": size}
    env = open_environment(**CONFIGURATIONS[seed % 4], **settings)
    program = WholeProgram(env, chance, tmp_path, chance.choice([1, 1, 1, 20]))
    try:
        program.grow(chance.randrange(1, 9))
        program.check()
    except Exception as error:
        error.add_note("\n".join(program.trace))
        raise
