"""Options that limit what one job, and all jobs of one user, may take. Declared as those of ``options``.

A job may set those of ``job.limit`` for itself as well: the smaller value counts. 0 stands for no limit.

Held by: tests/jobmaster/test_job_limits.py
"""

from __future__ import annotations

from engine.config.config_option import declared as _option

WALL_TIME_LIMIT = _option(
    "job.limit.wall-time",
    "duration",
    "0 ms",
    "Time from the start of a job after which it fails, waiting for slots included. 0: no limit.",
)
SLOTS_LIMIT = _option(
    "job.limit.slots",
    "int",
    "0",
    "Number of slots that a job has at one time. Its stages wait for each other; one that needs more alone fails the "
    "job. 0: no limit.",
    minimum=0,
)
MEMORY_LIMIT = _option(
    "job.limit.memory",
    "size",
    "0",
    "Bytes of pages and of Python workers that the running tasks of a job use, at most of each so far. 0: no limit.",
)
DISK_LIMIT = _option(
    "job.limit.disk",
    "size",
    "0",
    "Bytes that the tasks of a job write to disks of TaskManagers: spilled rows and stored results. 0: no limit.",
)
RESULT_LIMIT = _option(
    "job.limit.result-size",
    "size",
    "0",
    "Bytes of rows that a job returns to its client as a whole, such as collect(); streams are not limited. 0: no "
    "limit.",
)
USER_JOBS_LIMIT = _option(
    "user.limit.running-jobs",
    "int",
    "0",
    "Number of jobs of one user that run at one time; further ones wait, and others pass them. 0: no limit.",
    minimum=0,
)
USER_SLOTS_LIMIT = _option(
    "user.limit.slots",
    "int",
    "0",
    "Number of slots that the jobs of one user have at one time; further stages wait, and others pass them. A stage "
    "that needs more alone fails its job. 0: no limit.",
    minimum=0,
)
USER_MEMORY_LIMIT = _option(
    "user.limit.memory",
    "size",
    "0",
    "Bytes of pages and of Python workers that the running tasks of all jobs of one user use. The job that began last "
    "fails. 0: no limit.",
)
USER_DISK_LIMIT = _option(
    "user.limit.disk",
    "size",
    "0",
    "Bytes that the running jobs of one user have written to disks of TaskManagers. The job that began last fails. 0: "
    "no limit.",
)
USER_RESULT_LIMIT = _option(
    "user.limit.result-size",
    "size",
    "0",
    "Bytes of rows that the running jobs of one user return to their clients as a whole. The job that began last "
    "fails. 0: no limit.",
)
JOB_USER = _option(
    "job.user",
    "string",
    None,
    "Name of the user that a job belongs to. A submission with the token of a user gets its name, and is refused if it "
    "names another one here.",
)
