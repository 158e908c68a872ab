"""Settings of a session of Spark for a while: those that differ are set, and are as they were in the end.

Thread: any; all threads share the settings of a session, so callers in several threads need a lock.
Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def with_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change the settings of a session until the end of a block."""
    # None: it was not set
    known: dict[str, str | None] = {key: session.conf.get(key, None) for key in settings}
    before = {key: former for key, former in known.items() if former != settings[key]}
    try:
        for key in before:
            session.conf.set(key, settings[key])
        yield
    finally:
        for key, former in before.items():
            if former is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, former)
