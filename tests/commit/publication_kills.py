"""Writers that are killed at a step of their publication: the output is the old one or the new one, and nothing else.

    trials = KillTrials(folder, case, store, proxy)      without a store on the local disk
    trials.count()                       steps of a writer that is not killed
    trials.run(step, is_behind=…)        a writer is killed at a step; what it leaves is checked, and removed
    trials_of(folder, count, random)     that of many cases

A writer is forked from a process that has the engine loaded and no threads. On a local disk a step is an operation on
names and files of the output, which Python tells (audit events), or a commit of the library of a log, before and
behind. In a store it is a request, killed before the store sees it, or when the store has done it.

What is left then is removed by what ``flink-run ha gc`` does, or by the next job of the same output.
"""

import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import threading
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import NamedTuple

import obstore
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from engine import Environment, delta, iceberg
from engine.delta_tables import table_log
from engine.dispatcher.file_handles import FileHandles
from engine.dispatcher.orphans import find_orphans, remove_orphan
from engine.errors import EngineError
from engine.iceberg_tables import catalog_place
from engine.iceberg_tables.folder_catalog import FolderCatalog
from engine.storage.file_systems import file_system_of
from tests.storage.store_proxy import Proxy

OLD = [(key, 0, key % 3) for key in range(30)]
CHANGE = [(key, 1, key % 3) for key in range(20, 40)]
_EVENTS = {"os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Case(NamedTuple):
    """A kind of output, and how it is changed."""

    kind: str
    how: str
    properties: tuple[tuple[str, str], ...] = ()
    #: catalog of Iceberg: a folder, or SQL
    catalog: str = "folder"

    @property
    def name(self):
        return " ".join((self.kind, self.how, self.catalog if self.kind == "iceberg" else "", *dict(self.properties)))

    def new_rows(self):
        """Return the rows after the change."""
        keys = {key for key, _, _ in CHANGE}
        if self.how == "append":
            return sorted([*OLD, *CHANGE])
        if self.how == "overwrite":
            return sorted(CHANGE)
        if self.how == "overwrite_partitions":
            return sorted([row for row in OLD if row[2] not in {p for _, _, p in CHANGE}] + CHANGE)
        return sorted([row for row in OLD if row[0] not in keys] + CHANGE)


_VECTORS = (("delta.enableDeletionVectors", "true"),)
_FEED = (("delta.enableChangeDataFeed", "true"),)
_THIRD = (("format-version", "3"),)
_ON_READ = (("write.merge.mode", "merge-on-read"),)
CASES = [
    Case("parquet", "append"),
    Case("parquet", "overwrite"),
    Case("parquet", "overwrite_partitions"),
    Case("delta", "append"),
    Case("delta", "overwrite"),
    Case("delta", "merge"),
    Case("delta", "merge", _VECTORS),
    Case("delta", "merge", _VECTORS + _FEED),
    Case("iceberg", "append"),
    Case("iceberg", "overwrite_partitions", catalog="sql"),
    Case("iceberg", "merge"),
    Case("iceberg", "merge", _ON_READ, "sql"),
    Case("iceberg", "merge", _ON_READ),
    Case("iceberg", "merge", _THIRD),
]


def _table(rows):
    return pa.table({"id": [row[0] for row in rows], "v": [row[1] for row in rows], "p": [row[2] for row in rows]})


class Output:
    """The output of a case below a folder or a prefix."""

    def __init__(self, case, root):
        self.case, self.root = case, root
        self.path = f"{root}/db/t"

    @contextlib.contextmanager
    def catalog(self):
        """Give the catalog of its table; without it, None."""
        if self.case.kind != "iceberg":
            yield None
        elif self.case.catalog == "folder":
            yield self.root
        else:
            found = SqlCatalog("lake", uri=f"sqlite:///{self.root}/catalog.db", warehouse=f"file://{self.root}")
            found.create_namespace_if_not_exists("db")
            yield found
            found.close()

    def write(self, env, rows, mode, catalog, **options):
        """Run a job that writes rows."""
        data = env.from_arrow(_table(rows))
        match self.case.kind:
            case "parquet":
                data.write_parquet(self.path, mode=mode, partition_by=["p"])
            case "delta":
                data.write_delta(self.path, mode=mode, **options)
            case _:
                data.write_iceberg("db.t", catalog, mode=mode, **options)
        env.execute()

    def make(self, env):
        """Make the old state."""
        if "://" not in self.root:
            Path(self.path).parent.mkdir(parents=True)
        options = {"partition_by": ["p"], "properties": dict(self.case.properties)}
        with self.catalog() as catalog:
            self.write(env, OLD, "error", catalog, **options)

    def change(self, env):
        """Run the job that is killed."""
        with self.catalog() as catalog:
            if self.case.how != "merge":
                self.write(env, CHANGE, self.case.how, catalog)
                return
            target = delta(self.path) if self.case.kind == "delta" else iceberg("db.t", catalog)
            env.from_arrow(_table(CHANGE)).merge_into(target, on="id")

    def rows(self, env):
        """Return the rows that readers see."""
        with self.catalog() as catalog:
            match self.case.kind:
                case "parquet":
                    found = env.read_parquet(self.path)
                case "delta":
                    found = env.read_delta(self.path)
                case _:
                    found = env.read_iceberg("db.t", catalog)
            return sorted((int(row.id), int(row.v), int(row.p)) for row in found.select("id", "v", "p").collect())

    def left(self):
        """Return the files that no state of the output has."""
        files = file_system_of(self.root)
        found = {f"{folder}/{name}" for folder, _, names in files.walk(self.root) for name in names}
        match self.case.kind:
            case "parquet":
                own = {f"{self.path}/{name}" for name in ("_SUCCESS", "_drey.json")}
                return {path for path in found - own if "/.drey" in path or "/part-" not in path}
            case "delta":
                return self._left_of_delta(found, files)
            case _:
                return found - self._known_of_iceberg() - {f"{self.root}/catalog.db"}

    def _left_of_delta(self, found, files):
        log = {path for path in found if "/_delta_log/" in path}
        text = "".join(files.read(path).decode() for path in log if path.endswith(".json"))
        has_vectors = '"deletionVector":{' in text.replace(" ", "")
        return {
            path
            for path in found - log
            if path.rpartition("/")[2] not in text and not (path.endswith(".bin") and has_vectors)
        } | {path for path in log if not path.endswith((".json", "_last_checkpoint", ".checkpoint.parquet"))}

    def _known_of_iceberg(self):
        with self.catalog() as catalog:
            opened = FolderCatalog(catalog) if isinstance(catalog, str) else catalog
            table = opened.load_table("db.t")
            known = {table.metadata_location, *(each.metadata_file for each in table.metadata.metadata_log)}
            known.add(f"{table.location()}/metadata/version-hint.text")
            if isinstance(catalog, str):  # versions are files of their numbers
                newest = int(table.metadata_location.rpartition("/v")[2].partition(".")[0])
                known |= {f"{table.location()}/metadata/v{number}.metadata.json" for number in range(1, newest + 1)}
            for snapshot in table.metadata.snapshots:
                known.add(snapshot.manifest_list)
                for manifest in snapshot.manifests(table.io):
                    known.add(manifest.manifest_path)
                    entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
                    known |= {entry.data_file.file_path for entry in entries}
        return {path.removeprefix("file://") for path in known}


# ---- the writer


def _writer(case, root, settings, step, counted):
    """Change an output; be killed at a step of its own on a local disk, or by the server of a store."""
    if "://" not in root:
        _count_steps(root, step, counted)
    with Environment({"parallelism.default": 2, **settings}) as env:
        Output(case, root).change(env)
    os._exit(0)


def _count_steps(root, step, counted):
    lock, taken = threading.Lock(), [0]

    def take():
        with lock:
            taken[0] += 1
            counted.value = taken[0]
            if taken[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)

    def hear(event, arguments):
        if event == "open":
            path, mode, flags = arguments
            changes = flags & _WRITES if mode is None else any(letter in mode for letter in "wax+")
        else:
            path, changes = arguments[0] if arguments else "", event in _EVENTS
        if changes and isinstance(path, str | os.PathLike) and os.fspath(path).startswith(root):
            take()

    def told(call):
        def calls(*arguments, **options):
            take()
            result = call(*arguments, **options)
            take()
            return result

        return calls

    import deltalake.transaction
    from pyiceberg.catalog.sql import SqlCatalog as Catalog

    deltalake.DeltaTable.create_write_transaction = told(deltalake.DeltaTable.create_write_transaction)
    deltalake.transaction.create_table_with_add_actions = told(deltalake.transaction.create_table_with_add_actions)
    Catalog.commit_table = told(Catalog.commit_table)
    sys.addaudithook(hear)


# ---- the trials


class KillingProxy(Proxy):
    """Kills a process at a request: before the store sees it, or when it has done it."""

    def __init__(self, endpoint):
        super().__init__(endpoint)
        self.pid, self.step, self.is_behind, self.count = None, 0, False, 0
        self._counting = threading.Lock()
        self._server.handle_error = lambda *_: None  # connections of killed processes end at any byte

    def answered(self, method, path, headers, content=b""):
        with self._counting:
            self.count += 1
            is_due = self.pid is not None and self.count == self.step
        if is_due and not self.is_behind:
            self._kill()
            return 503, {}, b""
        found = super().answered(method, path, headers, content)
        if is_due:
            self._kill()
        return found

    def _kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class KillTrials:
    """The trials of one case, which begin with the same files each."""

    def __init__(self, folder, case, store=None, proxy=None):
        self.case, self._store, self._proxy = case, store, proxy
        self._folder = folder
        name = "".join(letter if letter.isalnum() else "-" for letter in case.name)
        self.root = f"{folder}/{name}" if store is None else f"s3://data/kills/{name}"
        settings = {} if store is None else store.settings
        self.env = Environment({"parallelism.default": 2, **settings})
        self._settings = {} if store is None else {**settings, "storage.s3.endpoint": proxy.endpoint}
        self.output = Output(case, self.root)
        self.output.make(self.env)
        self._kept = self._content()
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(["tests.commit.publication_kills", "deltalake.transaction"])

    def close(self):
        """End the jobs of the trials."""
        self.env.close()

    def count(self):
        """Return how many steps a writer takes that is not killed."""
        status, steps = self._write(0, is_behind=False)
        assert status == 0, status
        assert self.output.rows(self.env) == self.case.new_rows()
        assert self.output.left() == set()
        self._reset()
        return steps

    def run(self, step, *, is_behind=False, by_next_job=False):
        """Kill a writer at a step; return "old" or "new", what the output is then."""
        try:
            status, _ = self._write(step, is_behind=is_behind)
            assert status in (0, -signal.SIGKILL), status
            found = self.output.rows(self.env)
            new = self.case.new_rows()
            assert found in (OLD, new), f"{len(found)} rows, neither the old nor the new ones"
            assert status != 0 or found == new
            if by_next_job:
                with self.output.catalog() as catalog:
                    self.output.write(self.env, [(99, 9, 0)], "append", catalog)
                assert self.output.rows(self.env) == sorted([*found, (99, 9, 0)])
            else:
                self._collect_garbage()
                assert self.output.rows(self.env) == found
            left = self.output.left()
            assert not left, f"{len(left)} files are left: {sorted(path.removeprefix(self.root) for path in left)}"
            return "new" if found == new else "old"
        finally:
            self._reset()

    def _write(self, step, *, is_behind):
        counted = self._processes.RawValue("i", 0)
        arguments = (self.case, self.root, self._settings, step, counted)
        process = self._processes.Process(target=_writer, args=arguments)
        if self._proxy is not None:
            self._proxy.count, self._proxy.step, self._proxy.is_behind = 0, step, is_behind
        process.start()
        if self._proxy is not None:
            self._proxy.pid = process.pid
        process.join(60)
        if self._proxy is not None:
            self._proxy.pid = None
        status = process.exitcode
        if status is None:
            process.kill()
            process.join()
        process.close()
        return status, counted.value if self._proxy is None else self._proxy.count

    def _collect_garbage(self):
        """Do what ``flink-run ha gc --delete`` does for the folder of the output."""
        handles = FileHandles(Path(self._folder) / "handles", lambda epoch: False)
        for orphan in find_orphans(str(Path(self._folder) / "state"), handles, [self.root, f"{self.root}/db"]):
            assert remove_orphan(orphan, handles), orphan

    # ---- the same files for each trial

    def _content(self):
        if self._store is None:
            kept = f"{self.root}.kept"
            shutil.copytree(self.root, kept, copy_function=shutil.copy2)
            return kept
        client, prefix = self._store._client, self.root.removeprefix("s3://data/")
        listed = [each["path"] for chunk in obstore.list(client, prefix) for each in chunk]
        return {path: bytes(obstore.get(client, path).bytes()) for path in listed}

    def _reset(self):
        # versions that this process knows are others when the trial begins again
        table_log._kept.clear()
        table_log._selections_of.cache_clear()
        # and a catalog that is open has the database that is deleted here
        for catalog in catalog_place._opened.values():
            catalog.close()
        catalog_place._opened.clear()
        if self._store is None:
            shutil.rmtree(self.root)
            shutil.copytree(self._kept, self.root, copy_function=shutil.copy2)
            return
        client, prefix = self._store._client, self.root.removeprefix("s3://data/")
        for chunk in obstore.list(client, prefix):
            for each in chunk:
                if each["path"] not in self._kept:
                    obstore.delete(client, each["path"])
        for path, content in self._kept.items():
            obstore.put(client, path, content)


def trials_of(folder, count, chance, store=None, proxy=None):
    """Run trials of several cases; yield (case, step, whether behind it, "old" or "new", or what was wrong)."""
    try:
        yield from _trials_of(folder, count, chance, store, proxy)
    finally:
        forkserver._forkserver._stop()
        resource_tracker._resource_tracker._stop()


def _trials_of(folder, count, chance, store, proxy):
    cases = [case for case in CASES if store is None or case.catalog == "folder"]
    chance.shuffle(cases)
    each = max(5, -(-count // len(cases)))
    for case in cases[: -(-count // each)]:
        trials = KillTrials(folder, case, store, proxy)
        try:
            steps = trials.count()
            for step in sorted(chance.choices(range(1, steps + 1), k=min(each, count))):
                is_behind, by_next_job = store is not None and chance.random() < 0.5, chance.random() < 0.5
                try:
                    found = trials.run(step, is_behind=is_behind, by_next_job=by_next_job)
                except (AssertionError, EngineError) as error:
                    found = f"wrong: {error}"
                yield case.name, step, is_behind, found
        finally:
            trials.close()
        count -= each
