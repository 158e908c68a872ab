"""Fixtures of the API's tests: an environment whose jobs are recorded instead of run."""

from tests.api.recording_executor import env, executor

__all__ = ["env", "executor"]
