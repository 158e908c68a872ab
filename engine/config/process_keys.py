"""Options that the processes of a cluster read, each from its own configuration: a job cannot set them.

    without_effect(configuration) ─► [(key, where it was set)]      of those that a command line or a script sets

What travels with a job is read where the job runs, except for these: ``-D`` of a job changes nothing of them.

Held by: tests/config/test_process_keys.py
"""

from __future__ import annotations

from typing import Final

from engine.config.loader import Configuration

#: beginnings of the keys
PROCESS_KEYS: Final = (
    "blob.",
    "cluster.",
    "heartbeat.",
    "high-availability.gc.",
    "high-availability.job-recovery.",
    "high-availability.storageDir",
    "historyserver.",
    "jobmanager.bind-host",
    "jobmanager.max-running-jobs",
    "jobmanager.supervisor.",
    "jobmanager.webhook.",
    "jobstore.",
    "opentelemetry.",
    "security.read-token-file",
    "security.users-file",
    "slot.request.timeout",
    "taskmanager.",
    "user.limit.",
    "web.",
)
_OF_A_JOB: Final = ("command line", "script")


def without_effect(configuration: Configuration) -> list[tuple[str, str]]:
    """Return the keys that a command line or a script sets for a cluster that does not read them there, and where."""
    return [
        (key, configuration.origin(key))
        for key in sorted(configuration)
        if key.startswith(PROCESS_KEYS) and configuration.origin(key) in _OF_A_JOB
    ]
