"""The home of this installation: a checkout, or packages that pip has installed, without a folder around them.

                   checkout         $DREY_HOME is set     installed
    conf           <root>/conf      $DREY_HOME/conf       ~/.config/drey           $DREY_CONF_DIR wins everywhere
    logs, data     <root>           $DREY_HOME            ~/.local/state/drey      see entrypoint/places.py
    scripts        <root>/bin       those of the Python environment
    delivered      <root>           engine/delivered: defaults of conf, and scripts in Bash, copied there by setup.py

A checkout is always its own home. Nothing is made here: the folder of an installation's configuration appears when the
first process of a cluster starts, and without one everything has its default.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: folder that holds the packages
ROOT: Final = Path(__file__).resolve().parents[2]
_DELIVERED: Final = ROOT / "engine" / "delivered"


def is_checkout() -> bool:
    """Return whether this runs from the sources."""
    return (ROOT / "setup.py").is_file() and (ROOT / "bin" / "config.sh").is_file()


def chosen_home() -> Path | None:
    """Return the folder that has this installation's conf and log; None where they are the user's own."""
    if is_checkout():
        return ROOT
    chosen = os.environ.get("DREY_HOME")
    return Path(chosen).absolute() if chosen else None


def conf_folder() -> Path:
    """Return the folder of config.yaml, which need not be there."""
    chosen = os.environ.get("DREY_CONF_DIR")
    if chosen:
        return Path(chosen)
    home = chosen_home()
    return home / "conf" if home else next(_user_folders())


def delivered(folder: str, name: str = "") -> Path:
    """Return a file of ``conf`` or ``bin`` as it came with the program, or the folder itself."""
    return (ROOT if is_checkout() else _DELIVERED) / folder / name


def copy_delivered(folder: Path) -> list[Path]:
    """Copy the files of ``conf`` as they came with the program into a folder; return the copies. Raises: OSError."""
    copies = []
    for path in sorted(each for each in delivered("conf").rglob("*") if each.is_file()):
        copies.append(folder / path.relative_to(delivered("conf")))
        copies[-1].parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copies[-1])
    return copies


def command(name: str) -> Path:
    """Return the path of a command, such as ``flink-run``."""
    return (ROOT / "bin" if is_checkout() else Path(sysconfig.get_path("scripts"))) / name


def _user_folders() -> Iterator[Path]:
    """Yield the folders that may hold this user's configuration; $HOME may be another user's, as sudo leaves it."""
    homes = [os.environ.get("XDG_CONFIG_HOME", ""), os.path.join(os.environ.get("HOME", ""), ".config")]  # noqa: PTH118
    with contextlib.suppress(KeyError):  # a number without a name, as containers have them
        homes.append(os.path.join(pwd.getpwuid(os.geteuid()).pw_dir, ".config"))  # noqa: PTH118
    for config in map(Path, homes):
        nearest = config if config.exists() else config.parent
        with contextlib.suppress(OSError):
            if config.is_absolute() and nearest.stat().st_uid == os.geteuid():
                yield config / "drey"
    yield Path("/etc/drey")
