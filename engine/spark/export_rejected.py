"""Rows that an export sets aside: JSON lines in the folder ``<output>.rejected``, with the reason and the file of each.

    an export of everything     its own rows, in place of those of exports before
    rows that are added         its own rows beside those that are there; a row that has been looked at again
                                (``since``: without a value, or beyond what was exported then) is there once

So none is lost or there twice, however often a command that was killed is run again.

Held by: tests/spark/test_export_rejected.py
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from engine.spark.export_checks import MARKS, REASON, SOURCE
from engine.spark.file_urls import url_to_read
from engine.storage.file_systems import LOCAL

#: names of the columns for reason and file, and alternatives where the data has columns of these names
_NAMES: Final = {
    REASON: ("reason", "rejected_because", "__drey_reason"),
    SOURCE: ("source", "rejected_from", "__drey_source"),
}
#: formats of the JSON writer, whose defaults would cut off microseconds and seconds of old zones
_FORMATS: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def rejected_folder(target: Path) -> Path:
    """Return the folder of rows that were rejected from a data set."""
    return target.with_name(f"{target.name}.rejected")


def write_rejected(marked: DataFrame, folder: Path, before: Path | None = None) -> None:
    """Write the rows that have a reason, and those of a folder before that are not among them."""
    taken = {each.lower() for each in marked.columns if each not in MARKS}
    names = {mark: next(each for each in names if each not in taken) for mark, names in _NAMES.items()}
    bad = marked.where(F.col(REASON).isNotNull()).withColumnsRenamed(names)
    # by an exchange: one task alone would compute all rows
    bad.repartition(1).write.options(**_FORMATS).json(f"file://{folder}")
    count = len(strip_names(folder, "json"))
    if before is None or not before.is_dir():
        return
    read = marked.sparkSession.read
    kept = folder.with_name("kept")
    lines = read.text(url_to_read(before)).exceptAll(read.text(url_to_read(folder)))
    lines.repartition(1).write.text(f"file://{kept}")
    for number, path in enumerate(strip_names(kept, "txt"), count):
        path.rename(folder / f"part-{number:05d}.json")


def publish_rejected(folder: Path, target: Path) -> None:
    """Put the rows that were set aside in the place of those before, if any were; the target is locked."""
    place = rejected_folder(target)
    if not folder.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    elif not place.exists():
        folder.rename(place)
    elif not LOCAL.folders.exchange(os.fspath(folder), os.fspath(place)):
        shutil.rmtree(place, ignore_errors=True)
        folder.rename(place)


def strip_names(folder: Path, ending: str) -> list[Path]:
    """Give files of Spark plain names and remove everything else; return them in order."""
    parts = sorted(path for path in folder.iterdir() if path.name.startswith("part-") and path.suffix == f".{ending}")
    names = [f"part-{position:05d}.{ending}" for position in range(len(parts))]
    for path, name in zip(parts, names, strict=True):
        path.rename(folder / name)
    for path in folder.iterdir():
        if path.name not in names:
            path.unlink()
    return [folder / name for name in names]
