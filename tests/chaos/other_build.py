"""The next release, made of these sources: another version and protocol, with fields that this one does not know.

    build = next_build(folder) ─► a folder for PYTHONPATH; build.version
    next_build(folder, is_released=False) ─► with the version and the protocol's number of these sources

There is one version yet, so what comes after it is this one, changed as a release may change it: a field more in a
registration, in the counters of a task (which are in messages and in the journal), in an event of the journal, in a
handle and in the description of a task, and a message more. Native modules are those of these sources.
"""

import shutil

from engine import __version__
from engine.versions import PROTOCOL
from tests.last_release import Build
from tests.tidy.imports import ROOT

NEXT = "9.9.0"
_MESSAGE = '''

class AskZone(Request[Acknowledge], frozen=True):
    """Ask for the zone."""
'''
#: places in these sources, and what the next release has behind them
ADDED = {
    "engine/gateways/messages.py": (
        ("class RegisterTaskExecutor(", "    is_draining: bool = False\n", '    zone: str = "north"\n'),
        ("class RequestLeader(", '    """Ask a JobManager which one leads."""\n', _MESSAGE),
        ("MESSAGE_TYPES: ", "= (\n", "    AskZone,\n"),
    ),
    "engine/graph/deployment.py": (
        ("class TaskDeploymentDescriptor(", "    shares_splits: bool = False\n", "    niceness: int = 0\n"),
        ("class TaskCounters(", "    runnable_us: int = 0\n", "    accelerator_us: int = 7\n"),
    ),
    "engine/jobmaster/job_event.py": (("class Scheduled(", "    time_ms: int\n", '    zone: str = "north"\n'),),
    "engine/dispatcher/job_handle.py": (
        ("class JobHandle(", "    format: int = HANDLE.newest\n", '    zone: str = "north"\n'),
    ),
}


HERE = Build(ROOT, __version__)


def next_build(folder, is_released=True):
    """Write the next release into a folder, or what it is while it is made."""
    left_out = shutil.ignore_patterns("*.c", "*.pyx", "*.html", "*.so")
    for package in ("engine", "ha"):
        shutil.copytree(ROOT / package, folder / package, ignore=left_out)
    for native in ROOT.glob("engine/**/*.so"):
        (folder / native.relative_to(ROOT)).symlink_to(native)
    for name, places in ADDED.items():
        text = (folder / name).read_text()
        for begin, before, added in places:
            assert text.count(begin) == 1, f"{name} has changed: {begin!r}"
            end = text.index(before, text.index(begin)) + len(before)
            text = text[:end] + added + text[end:]
        (folder / name).write_text(text)
    if not is_released:
        return Build(folder, __version__)
    init, versions = folder / "engine" / "__init__.py", folder / "engine" / "versions.py"
    init.write_text(init.read_text().replace(f'"{__version__}"', f'"{NEXT}"'))
    form = f'"message", {PROTOCOL.newest}, {PROTOCOL.oldest})'
    assert form in versions.read_text()
    versions.write_text(versions.read_text().replace(form, f'"message", {PROTOCOL.newest + 1}, {PROTOCOL.newest})'))
    return Build(folder, NEXT)
