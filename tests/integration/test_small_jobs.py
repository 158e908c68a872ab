"""What a small job need not do: jobs that follow each other do not wait for a disk, nor for the collector."""

import gc
import os

import pyarrow as pa
import pytest

from engine import Environment, count
from engine.jobmaster.output_steps import OutputSteps

pytestmark = [pytest.mark.integration, pytest.mark.quick]


def joined(env):
    left = env.from_arrow(pa.table({"key": [1, 2, 3], "x": [4, 5, 6]}))
    right = env.from_arrow(pa.table({"key": [3, 2, 2], "y": [7, 8, 9]}))
    return left.join(right, on="key").group_by("x").agg(n=count()).sort("x")


def test_a_job_leaves_nothing_to_the_collector():
    with Environment(config={"parallelism.default": 2}) as env:
        rows = joined(env)
        for _ in range(2):  # what is made once
            rows.collect()
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                assert [tuple(row) for row in rows.collect()] == [(5, 2), (6, 1)]
            assert gc.collect() < 50, "each of a job's own parts refers to others"
        finally:
            gc.enable()


def test_a_result_for_the_client_waits_for_no_disk_and_an_output_does(tmp_path, monkeypatch):
    synchronised = []
    monkeypatch.setattr(os, "fsync", synchronised.append)
    with Environment(config={"parallelism.default": 2}) as env:
        rows = joined(env)
        assert len(rows.collect()) == 2 and synchronised == []
        rows.write_csv(str(tmp_path / "out"))
        env.execute()
    assert synchronised


def test_the_outputs_of_a_job_that_is_collected_need_no_file_and_no_thread(monkeypatch):
    async def refuse(steps, work):
        raise AssertionError("a step waits for a thread")

    monkeypatch.setattr(OutputSteps, "_ask_storage", refuse)
    with Environment() as env:
        rows = env.from_arrow(pa.table({"n": [1, 2], "t": ["x", "y"]}))
        for _ in range(2):
            assert sorted(map(tuple, rows.collect())) == [(1, "x"), (2, "y")]
        assert not list(env.temporary_folder().glob("result-*"))
