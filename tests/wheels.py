"""The source distribution and the wheel of these sources, made of what is compiled here: seconds, not minutes."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD_SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
#: stand-in for the compiler: takes the object of the same name that is newer than its C, or makes one
COMPILER = """#!/bin/sh
for word in "$@"; do
    case "$word" in *.c) source="$word" ;; *.o) object="$word" ;; esac
done
if [ -n "$source" ] && [ "{objects}/$object" -nt "{objects}/$source" ]; then
    exec cp "{objects}/$object" "$object"
fi
exec {compiler} "$@" -O0
"""


def run(*words, cwd, **environment):
    done = subprocess.run(
        list(map(str, words)), check=False, cwd=cwd, env=environment or None, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def make_distributions(folder):
    """Return the source distribution, and the wheel that is built from it and what was made of the same sources here.

    It has every file that is translated (a test of installations), so translating again tells no more, nor does
    compiling the same C with the same options. What has no object here is not optimised: it is there to be found and
    loaded.
    """
    run(sys.executable, "-c", BUILD_SDIST, folder, cwd=ROOT)
    (sdist,) = folder.glob("drey_engine-*.tar.gz")
    compiler = folder / "cc"
    compiler.write_text(COMPILER.format(objects=folder / "objects", compiler=os.environ.get("CC", "gcc")))
    compiler.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "DREY_ANNOTATE"} | {"CC": str(compiler)}
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    if (ROOT / "build" / "profile").read_text() == "release":
        (folder / "objects").symlink_to(ROOT)
        for translated in ROOT.glob("engine/**/*.c"):
            shutil.copyfile(translated, unpacked / translated.relative_to(ROOT))
    words = ("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, unpacked)
    run(sys.executable, *words, cwd=folder, **environment)
    (wheel,) = folder.glob("drey_engine-*.whl")
    return sdist, wheel
