"""Modules that a job's functions import, for Spark's executors.

    shipped_modules ─► one .zip each, named by its hash ─► session.addArtifacts ─► first on the path of Spark's workers

Spark fetches a file when a task first needs it, so files stay as long as this process. A session refuses other contents
under a name that it has, and the same once more does nothing: hence the names.

Held by: tests/dataframes/test_standalone_spark.py
"""

from __future__ import annotations

import atexit
import hashlib
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.config.command_line import current_command_line
from engine.private_folder import scratch_folder
from engine.targets.shipped_modules import ShippedModule, shipped_modules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship_modules(session: SparkSession) -> None:
    """Give executors what the job's functions import, also those on other machines."""
    line = current_command_line()
    for module in shipped_modules(line.script, line.py_files):
        place = _folder() / f"{hashlib.sha256(module.content).hexdigest()[:16]}.zip"
        if not place.exists():
            _write(module, place)
        session.addArtifacts(str(place), pyfile=True)


def _write(module: ShippedModule, place: Path) -> None:
    if not module.name.endswith(".py"):
        place.write_bytes(module.content)
        return
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr(zipfile.ZipInfo(module.name), module.content)


@cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="drey-modules-", dir=scratch_folder())
    atexit.register(folder.cleanup)
    return Path(folder.name)
