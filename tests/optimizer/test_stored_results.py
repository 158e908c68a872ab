"""A plan of very many subtasks says what they take beside their rows, and with how many they would fit."""

import re

from engine.graph.exchange_mode import ExecutionMode
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.stored_results import NOTE_BYTES, crowding
from tests.optimizer.test_explain import report_plan


def planned(parallelism):
    return optimize(report_plan(), OptimizerSettings(parallelism=parallelism, execution_mode=ExecutionMode.BATCH))


def test_a_plan_that_crowds_a_process_says_so_with_the_parallelism():
    plan = planned(64)
    text = crowding(plan, 4096)
    producers, consumers = map(int, re.findall(r"(\d+) (?:subtasks of|of ')", text))
    assert consumers == 64
    assert "to 2, or raise taskmanager.memory.process.size" in text  # 4096 / 8 / 60 notes are 2 by 2
    enough = 8 * NOTE_BYTES * producers * consumers
    assert crowding(plan, enough) == ""
    assert crowding(plan, enough - 1).startswith(f"{producers} subtasks of ")


def test_one_subtask_of_each_is_nothing_to_speak_of():
    assert crowding(planned(1), 8 * NOTE_BYTES) == ""
