"""The session of Spark: the process's own, one at a server of Spark Connect, or a new one of this machine.

    open_session(name, master, remote)
        a session that the process has, of Spark Connect or with a JVM ─► used as it is, settings included
        remote, a master sc://…, SPARK_REMOTE                          ─► a session of Spark Connect
        else                                                           ─► a JVM of this process, ``start_spark``

Held by: tests/spark/test_connect.py
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, is_remote

from engine.config.home import conf_folder, delivered
from engine.errors import ConfigurationError
from engine.user_warnings import warn_user

_LOG_SETTINGS: Final = "spark-log4j2.properties"
#: module that forks Python workers with the engine loaded
_DAEMON: Final = "engine.targets.spark_daemon"
_SCHEME: Final = "sc://"


def open_session(name: str, master: str | None = None, remote: str | None = None) -> SparkSession:
    """Return the session that the process has, else one at a server of Spark Connect, else one of this machine.

    Raises: ConfigurationError (the server does not answer, there is no Java).
    """
    if master is not None and master.startswith(_SCHEME):
        remote = remote or master
    there = _present_session()
    if there is not None:
        if remote:
            _warn_of_another(there, remote)
        return there
    remote = remote or os.environ.get("SPARK_REMOTE")
    return _connect(name, remote) if remote else start_spark(name, master)


def _present_session() -> SparkSession | None:
    """Return the session that the process has; a thread without one of its own has the process's."""
    if SparkContext._active_spark_context is not None:
        # without settings, which it would take over for good
        return SparkSession.builder.getOrCreate()
    if is_remote():
        try:
            return SparkSession.active()
        except PySparkException:  # it was stopped
            return None
    return None


def _warn_of_another(there: SparkSession, remote: str) -> None:
    """Warn the author of a program whose own session is not at the server that a setting names."""
    where = "with a JVM of its own"
    if is_remote():
        from pyspark.sql.connect.client import DefaultChannelBuilder

        own = getattr(getattr(there.client, "_builder", None), "endpoint", None)
        # else it is a server within this process, as local[2] is
        if not remote.startswith(_SCHEME) or own == DefaultChannelBuilder(remote).endpoint:
            return
        where = f"at {_SCHEME}{own}"
    warn_user(f"Spark at {remote} is not asked: this program has a session of Spark {where} already, which is used")


def _connect(name: str, remote: str) -> SparkSession:
    try:
        return SparkSession.builder.remote(remote).appName(name).getOrCreate()
    except Exception as error:
        raise ConfigurationError(f"Spark at {remote} does not answer: {str(error).splitlines()[0]}") from error


def start_spark(name: str, master: str | None = None) -> SparkSession:
    """Return a session of a JVM that this process starts, by default for this machine.

    Output of the JVM while it starts goes to a file that is shown only when it does not start.

    Raises:
        ConfigurationError: there is no Java, or the process has had a session of Spark Connect.
    """
    if is_remote():
        raise ConfigurationError(
            "this program's session of Spark Connect was stopped, and Spark starts no other kind in the same process: "
            "make another with SparkSession.builder.remote(...), or name its server in spark.remote"
        )
    home = os.environ.get("JAVA_HOME")
    if shutil.which(f"{home}/bin/java" if home else "java") is None:
        where = f"JAVA_HOME is {home}, where there is no bin/java" if home else "there is no java on the PATH"
        raise ConfigurationError(f"Spark needs Java 17 or 21, and {where}; install one, or set JAVA_HOME to it")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Python workers of Spark have the packages of this process.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _interrupts_kept(), _quiet_start(), _no_current_folder():
        return _builder(name, master or "local[*]").getOrCreate()


def _builder(name: str, master: str) -> SparkSession.Builder:
    own = conf_folder() / _LOG_SETTINGS
    log_settings = own.absolute() if own.is_file() else delivered("conf", _LOG_SETTINGS)
    builder = (
        SparkSession.builder.appName(name)
        .master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{log_settings}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        # Else each call of a function or column asks the JVM a dozen times, to say in errors where it was.
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
    )
    if master.startswith("local"):
        builder = builder.config("spark.python.daemon.module", _DAEMON)  # other machines may lack it
    return builder


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep the program's own answer to Ctrl-C: Spark's asks the JVM in the middle of another question."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Show what is written on standard error inside only where it fails."""
    with tempfile.TemporaryFile() as said:
        own_stderr = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield
        except Exception:
            said.seek(0)
            os.write(own_stderr, said.read())
            raise
        finally:
            os.dup2(own_stderr, 2)
            os.close(own_stderr)


@contextmanager
def _no_current_folder() -> Iterator[None]:
    """Keep Python workers of a JVM that is started inside from importing modules of the current folder."""
    is_chosen = "PYTHONSAFEPATH" in os.environ
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    try:
        yield
    finally:
        if not is_chosen:
            del os.environ["PYTHONSAFEPATH"]
