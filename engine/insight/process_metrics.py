"""Metrics of the process, by Flink's names where Flink has one.

Held by: tests/rest/test_process_routes.py
"""

from __future__ import annotations

import time

import psutil

from engine.rpc.refusals import REFUSALS

#: prefix of the metrics of refused calls; a Reason follows
REFUSED = "Status.Refused."
_process = psutil.Process()


def process_metrics() -> dict[str, float]:
    """Return the numbers of this moment. Bytes, seconds, counts."""
    refused = {f"{REFUSED}{reason}": float(count) for reason, count in REFUSALS.counts.items()}
    with _process.oneshot():
        memory = _process.memory_info()
        times = _process.cpu_times()
        return {
            "Status.Process.Memory.Resident": float(memory.rss),
            "Status.Process.Memory.Virtual": float(memory.vms),
            "Status.Process.CPU.Time": times.user + times.system,
            "Status.Process.Threads.Count": float(_process.num_threads()),
            "Status.Process.FileDescriptors.Count": float(_process.num_fds()),
            "Status.Process.Uptime": max(0.0, time.time() - _process.create_time()),
            "Status.Machine.Memory.Available": float(psutil.virtual_memory().available),
            **refused,
        }
