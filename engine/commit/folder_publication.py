"""Publication of a folder: the decided files become it with one rename. Any step may be the last before a crash.

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

Held by: tests/commit/test_publish.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from engine.commit.decision import DecidedOutput
from engine.commit.output_target import OutputTakenError
from engine.commit.staging import OWNER_FILE, REPLACED
from engine.errors import JobExecutionError
from engine.storage.file_system import Folders
from engine.storage.file_systems import file_system_of, folders_of, is_folder

_OUTPUT = "output"
#: folder of files that are added to an existing target
_NEW = "new"
_ASSEMBLED_FILE = "assembled.json"
_PUBLISHED_FILE = "published"


class _Assembled(msgspec.Struct, frozen=True):
    device: int
    inode: int


def place_output(output: DecidedOutput, after_step: Callable[[str], None], is_durable: bool) -> None:
    """Make the decided files the target; idempotent.

    after_step: called with each step's name when it is done.
    is_durable: whether a leader may go on after a crash of the machine; else only the output is synchronised.
    """
    files = file_system_of(output.staging)
    if is_folder(output.staging) and not files.find(f"{output.staging}/{_PUBLISHED_FILE}"):
        folders = folders_of(output.staging, "the publication of an output")
        _place_output(output, folders, after_step, is_durable)


def _place_output(output: DecidedOutput, folders: Folders, after_step: Callable[[str], None], is_durable: bool) -> None:
    folder, record = f"{output.staging}/{_OUTPUT}", f"{output.staging}/{_ASSEMBLED_FILE}"
    files = file_system_of(output.staging)
    if output.mode:
        from engine.commit.merge import merge_into

        _assemble(output, folders, f"{output.staging}/{_NEW}", after_step)
        merge_into(
            Path(output.target),
            Path(output.staging),
            (file.part for file in output.files),
            after_step,
            replaces_partitions=output.mode == "overwrite_partitions",
        )
        _confirm(output, folders, after_step, is_durable)
        return
    if not files.find(record):
        _assemble(output, folders, folder, after_step)
        identity = folders.identity(folder)
        if identity is None:
            raise JobExecutionError(f"{folder}: the folder of the output {output.target} is missing")
        files.replace(record, msgspec.json.encode(_Assembled(*identity)), is_durable)
        after_step("identify")
    else:
        assembled = msgspec.json.decode(files.read(record), type=_Assembled)
        identity = (assembled.device, assembled.inode)
    if folders.identity(output.target) != identity:
        _place(output, folders, folder, after_step)
        after_step("place")
    _confirm(output, folders, after_step, is_durable)


def _confirm(output: DecidedOutput, folders: Folders, after_step: Callable[[str], None], is_durable: bool) -> None:
    if not output.is_passing:
        folders.sync(output.target.rpartition("/")[0] or "/")
    file_system_of(output.staging).replace(f"{output.staging}/{_PUBLISHED_FILE}", b"", is_durable)
    after_step("confirm")


def _assemble(output: DecidedOutput, folders: Folders, folder: str, after_step: Callable[[str], None]) -> None:
    files = file_system_of(folder)
    folders.make(folder)
    after_step("create output")
    made = ""
    for file in output.files:
        source, part = f"{output.staging}/{file.name}", f"{folder}/{file.part}"
        parent = part.rpartition("/")[0]
        if parent != made:
            folders.make(parent)
            made = parent
        try:
            files.publish(source, part)
        except FileNotFoundError:
            if not files.find(part):
                raise JobExecutionError(f"{source}: a staged file of the output {output.target} is missing") from None
        after_step(f"move {file.part}")
    for text in output.texts:
        # Complete under its name or not there: made outside of the folder, so that no half of it is published.
        files.replace(f"{output.staging}/{text.name}", text.content.encode())
        files.publish(f"{output.staging}/{text.name}", f"{folder}/{text.name}")
        after_step(f"write {text.name}")
    if not output.is_passing:
        folders.sync(folder)


def _place(output: DecidedOutput, folders: Folders, folder: str, after_step: Callable[[str], None]) -> None:
    if output.overwrite and file_system_of(output.target).is_taken(output.target):
        if folders.exchange(folder, output.target):
            return
        folders.rename(output.target, f"{output.staging}/{REPLACED}")
        after_step("set aside")
    try:
        folders.rename_if_absent(folder, output.target)
    except FileExistsError as error:
        raise OutputTakenError(
            f"output {output.target} was created by another program while the job ran; it was left as it is"
        ) from error


def clean_staging(staging: str, after_step: Callable[[str], None]) -> None:
    """Remove the staging folder of an output that is placed; idempotent."""
    files, done = file_system_of(staging), f"{staging}.done"
    if is_folder(staging):
        markers = (_ASSEMBLED_FILE, OWNER_FILE, _PUBLISHED_FILE)
        for entry in sorted(files.entries(staging), key=lambda each: each.name):
            if entry.name not in markers:
                files.delete_tree(entry.path)
                after_step(f"remove {entry.name}")
        files.delete(f"{staging}/{_ASSEMBLED_FILE}")
        after_step(f"remove {_ASSEMBLED_FILE}")
        # From here on the staging folder is gone at once: that is the sign that all is done.
        folders_of(staging, "the publication of an output").rename(staging, done)
        after_step("rename staging")
    files.delete_tree(done)
    after_step("remove staging")
