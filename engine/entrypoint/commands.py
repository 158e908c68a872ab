"""The commands of ``bin/*.sh`` where pip has installed the packages: console scripts of the same names.

    start-cluster.sh ─► start_cluster() ─► scripts.main(["cluster", "start", ...])

Words and usage are those of the scripts of a checkout, which besides make the environment that they run in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from engine.config.home import delivered
from engine.entrypoint.scripts import main

_VERBS = "(start|start-foreground)"
_STOPS = "stop | stop-all"


def jobmanager() -> int:
    """Run ``jobmanager.sh``."""
    return _control("jobmanager", " [host [port]]")


def taskmanager() -> int:
    """Run ``taskmanager.sh``."""
    return _control("taskmanager", "")


def historyserver() -> int:
    """Run ``historyserver.sh``."""
    return _control("historyserver", "")


def standalone_job() -> int:
    """Run ``standalone-job.sh``."""
    return _control("standalonejob", " JOB.py [args]")


def start_cluster() -> int:
    """Run ``start-cluster.sh``."""
    words = sys.argv[1:]
    if words and not words[0].startswith("-D"):
        return _usage("[-D key=value]...")
    return main(["cluster", "start", *words])


def stop_cluster() -> int:
    """Run ``stop-cluster.sh``."""
    return _without_words(["cluster", "stop"])


def start_quorum() -> int:
    """Run ``start-zookeeper-quorum.sh``."""
    return _without_words(["quorum", "start"])


def stop_quorum() -> int:
    """Run ``stop-zookeeper-quorum.sh``."""
    return _without_words(["quorum", "stop"])


def zookeeper() -> int:
    """Run ``zookeeper.sh``."""
    words = sys.argv[1:]
    is_start = len(words) > 1 and words[0] in ("start", "start-foreground") and words[1].isdecimal()
    if not is_start and words not in (["stop"], ["stop-all"]):
        return _usage(f"{_VERBS} N | {_STOPS}")
    return main(["zookeeper", *words])


def spark_export() -> int:
    """Run ``spark-export``."""
    if find_spec("pyspark") is None:
        sys.stderr.write("spark-export needs PySpark, which is an extra: pip install 'drey-engine[spark]'\n")
        return 1
    from engine.spark.export_command import main as export

    return export()


def make_certificates() -> int:
    """Run ``make-certificates.sh``, which is Bash."""
    script = delivered("bin", "make-certificates.sh")
    os.execvp("bash", ["bash", str(script), *sys.argv[1:]])  # noqa: S606 - it has no part in Python


def _control(daemon: str, words: str) -> int:
    if sys.argv[1:2] and sys.argv[1] in ("start", "start-foreground", "stop", "stop-all"):
        return main([daemon, *sys.argv[1:]])
    return _usage(f"{_VERBS} [-D key=value]...{words} | {_STOPS}")


def _without_words(words: Sequence[str]) -> int:
    return _usage("") if sys.argv[1:] else main(words)


def _usage(words: str) -> int:
    is_asked_for = sys.argv[1:2] in (["-h"], ["--help"])
    (sys.stdout if is_asked_for else sys.stderr).write(f"Usage: {Path(sys.argv[0]).name} {words}".rstrip() + "\n")
    return 0 if is_asked_for else 1
