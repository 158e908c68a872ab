"""Modules that a job's Python functions import, packed to travel with the job.

    --py-files FILE,...          as they are: .py files, archives (zip, wheel); a folder is packed
    beside the script            what the script has imported from its own folder, in one archive

A function of the script itself travels by value (cloudpickle); what it imports from other files of the user does not,
and a TaskManager on another machine, or one started before, has never seen them. Whole packages go, not only what has
been imported so far: a function may import more when it runs. What is installed with pip is expected to be installed
everywhere.

The same files give the same bytes of an archive (fixed times, sorted names), so a job that is submitted again uploads
nothing again.
"""

from __future__ import annotations

import io
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from engine.errors import ConfigurationError
from engine.graph.job_graph import SCRIPT_MODULES

#: limit of one archive in bytes: modules, not data
ARCHIVE_BYTES_MAX = 64 << 20
_ARCHIVES = frozenset({".zip", ".whl"})
_EPOCH = (1980, 1, 1, 0, 0, 0)


class ShippedModule(NamedTuple):
    """A file that goes with the job."""

    name: str
    content: bytes


def shipped_modules(script: Path | None, py_files: Sequence[str]) -> list[ShippedModule]:
    """Return the modules to send with a job, in the order of the module search path.

    Raises: ConfigurationError for entries that do not exist or are no modules, and for what is too large.
    """
    shipped = [_shipped(Path(entry).resolve()) for entry in py_files]
    if script is not None:
        sources = list(_imported_from(script.resolve().parent, script.resolve()))
        if sources:
            shipped.append(ShippedModule(SCRIPT_MODULES, _packed(script.resolve().parent, sources)))
    return shipped


def _shipped(path: Path) -> ShippedModule:
    if path.is_dir():
        return ShippedModule(f"{path.name}.zip", _packed(path, [path]))
    if not path.is_file() or path.suffix not in {".py", *_ARCHIVES}:
        raise ConfigurationError(f"--py-files: {path} is neither a .py file, an archive (.zip, .whl) nor a folder")
    return ShippedModule(path.name, path.read_bytes())


def _imported_from(folder: Path, script: Path) -> Iterator[Path]:
    """Yield modules and packages at the top of the folder that this process has imported."""
    # A script that lies among the interpreter's own modules (a test, a tool in site-packages) has none of its own.
    if any(folder.is_relative_to(Path(own).resolve()) for own in sysconfig.get_paths().values()):
        return
    seen = set()
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None or name == "__main__":
            continue
        path = Path(file).resolve()
        if path == script or not path.is_relative_to(folder):
            continue
        top = folder / path.relative_to(folder).parts[0]
        # Only what is importable by its place: a package of that name, or a file of it.
        if top not in seen and top.name.removesuffix(".py") == name.partition(".")[0]:
            seen.add(top)
            yield top


def _packed(root: Path, sources: Sequence[Path]) -> bytes:
    target = io.BytesIO()
    size = 0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for source in sources for path in _files(source)):
            content = path.read_bytes()
            size += len(content)
            if size > ARCHIVE_BYTES_MAX:
                raise ConfigurationError(
                    f"modules in {root} have more than {ARCHIVE_BYTES_MAX >> 20} MB: keep data out of the folder, or "
                    "pass what is needed with --py-files"
                )
            entry = zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return target.getvalue()


def _files(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
            yield path
