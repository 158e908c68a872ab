"""Publication: the decided files become the target with one rename. Any step may be the last one before a crash.

    1  ASSEMBLE   staging/<attempt file> ─rename─► staging/output/part-0000k.ext, then texts of the decision
    2  IDENTIFY   staging/assembled.json: device and inode of output/
    3  PLACE      target absent:  rename staging/output ─► target
                  overwrite:      exchange staging/output ◄─► target (the old one is in staging now)
    4  CONFIRM    staging/published, folder synchronised
    5  CLEAN      everything else, assembled.json, decision.json; staging ─rename─► staging.done, which is removed

When it runs again after a crash, each step sees what is done already: a part in output/ was renamed; a target with the
recorded inode was placed; ``published`` means that only cleaning is left; and a staging folder that is gone means that
all is done. At every moment the target is the old one or the new one, whole. (Where the kernel cannot exchange
two paths, the old target is moved into staging first, and between two renames the name is free.)

Where files are added to a target that stays, or partitions of it replaced, ``merge`` does 2 and 3.

A target that appeared while the job ran, without ``overwrite``, is an OutputTakenError: it is never touched.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from engine.commit.decision import DecidedOutput, Decision
from engine.commit.durable_file import fsync_folder, replace_file
from engine.commit.rename import exchange, rename_if_absent
from engine.commit.staging import OWNER_FILE, REPLACED, remove_path
from engine.errors import JobExecutionError

_OUTPUT = "output"
#: what is added to a target that stays
_NEW = "new"
_ASSEMBLED_FILE = "assembled.json"
_PUBLISHED_FILE = "published"


class OutputTakenError(JobExecutionError):
    """Another program created the target while the job ran."""


class _Assembled(msgspec.Struct, frozen=True):
    device: int
    inode: int


def _no_step(step: str) -> None:
    """Do nothing after a step; tests stop there."""


def publish(decision: Decision, after_step: Callable[[str], None] = _no_step, is_durable: bool = True) -> None:
    """Make every decided output its target and remove staging; idempotent.

    after_step: called with each step's name when it is done.
    is_durable: whether a leader may go on after a crash of the machine; else only the output is synchronised.
    """
    for output in decision.outputs:
        staging = Path(output.staging)
        if staging.is_dir() and not (staging / _PUBLISHED_FILE).exists():
            _place_output(output, staging, after_step, is_durable)
    # The first staging folder may hold the decision: it goes last.
    for output in reversed(decision.outputs):
        _clean(Path(output.staging), after_step)


def _place_output(output: DecidedOutput, staging: Path, after_step: Callable[[str], None], is_durable: bool) -> None:
    folder, target = staging / _OUTPUT, Path(output.target)
    if output.mode:
        from engine.commit.merge import merge_into  # noqa: PLC0415 - start-up time

        _assemble(output, staging, staging / _NEW, after_step)
        merge_into(
            target,
            staging,
            (file.part for file in output.files),
            after_step,
            replaces_partitions=output.mode == "overwrite_partitions",
        )
        _confirm(output, staging, after_step, is_durable)
        return
    if not (staging / _ASSEMBLED_FILE).exists():
        _assemble(output, staging, folder, after_step)
        identity = folder.stat()
        assembled = _Assembled(identity.st_dev, identity.st_ino)
        replace_file(staging / _ASSEMBLED_FILE, msgspec.json.encode(assembled), is_durable)
        after_step("identify")
    else:
        assembled = msgspec.json.decode((staging / _ASSEMBLED_FILE).read_bytes(), type=_Assembled)
    if not _is_folder(target, assembled):
        _place(output, folder, target, staging, after_step)
        after_step("place")
    _confirm(output, staging, after_step, is_durable)


def _confirm(output: DecidedOutput, staging: Path, after_step: Callable[[str], None], is_durable: bool) -> None:
    if not output.is_passing:
        fsync_folder(Path(output.target).parent)
    replace_file(staging / _PUBLISHED_FILE, b"", is_durable)
    after_step("confirm")


def _assemble(output: DecidedOutput, staging: Path, folder: Path, after_step: Callable[[str], None]) -> None:
    folder.mkdir(exist_ok=True)
    after_step("create output")
    made = ""
    for file in output.files:
        # Texts, since there may be tens of thousands: as paths they would take twice the time.
        source, part = f"{staging}/{file.name}", f"{folder}/{file.part}"
        parent = part.rpartition("/")[0]
        if parent != made:
            os.makedirs(parent, exist_ok=True)  # noqa: PTH103
            made = parent
        try:
            os.rename(source, part)  # noqa: PTH104
        except FileNotFoundError:
            if not os.path.exists(part):  # noqa: PTH110
                raise JobExecutionError(f"{source}: a staged file of the output {output.target} is missing") from None
        after_step(f"move {file.part}")
    for text in output.texts:
        # Complete under its name or not there: made outside of the folder, so that no half of it is published.
        replace_file(staging / text.name, text.content.encode())
        (staging / text.name).replace(folder / text.name)
        after_step(f"write {text.name}")
    if not output.is_passing:
        fsync_folder(folder)


def _place(output: DecidedOutput, folder: Path, target: Path, staging: Path, after_step: Callable[[str], None]) -> None:
    if output.overwrite and os.path.lexists(target):
        if exchange(folder, target):
            return
        target.rename(staging / REPLACED)
        after_step("set aside")
    try:
        rename_if_absent(folder, target)
    except FileExistsError as error:
        raise OutputTakenError(
            f"output {target} was created by another program while the job ran; it was left as it is"
        ) from error


def _is_folder(path: Path, assembled: _Assembled) -> bool:
    try:
        identity = path.lstat()
    except FileNotFoundError:
        return False
    return (identity.st_dev, identity.st_ino) == (assembled.device, assembled.inode)


def _clean(staging: Path, after_step: Callable[[str], None]) -> None:
    done = staging.with_name(f"{staging.name}.done")
    if staging.is_dir():
        markers = (_ASSEMBLED_FILE, OWNER_FILE, _PUBLISHED_FILE)
        for entry in sorted(staging.iterdir()):
            if entry.name not in markers:
                remove_path(entry)
                after_step(f"remove {entry.name}")
        (staging / _ASSEMBLED_FILE).unlink(missing_ok=True)
        after_step(f"remove {_ASSEMBLED_FILE}")
        # From here on the staging folder is gone at once: that is the sign that all is done.
        staging.rename(done)
        after_step("rename staging")
    remove_path(done)
    after_step("remove staging")
