"""Checkpoints of the second kind, as Spark writes them: a file with others beside it (``v2Checkpoint``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_NAME = "00000000-0000-4000-8000-000000000001"
_WORDS = pa.map_(pa.string(), pa.string())
_VECTOR = {"storageType": pa.string(), "pathOrInlineDv": pa.string(), "offset": pa.int32(), "sizeInBytes": pa.int32()}
_FILE = {
    "path": pa.string(),
    "partitionValues": _WORDS,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "stats": pa.string(),
    "tags": _WORDS,
    "deletionVector": pa.struct({**_VECTOR, "cardinality": pa.int64()}.items()),
}
_TYPES = {
    "checkpointMetadata": {"version": pa.int64()},
    "protocol": {
        **{f"min{word}Version": pa.int32() for word in ("Reader", "Writer")},
        **{f"{word}Features": pa.list_(pa.string()) for word in ("reader", "writer")},
    },
    "metaData": {
        **dict.fromkeys(("id", "name", "description", "schemaString"), pa.string()),
        "format": pa.struct({"provider": pa.string(), "options": _WORDS}.items()),
        "partitionColumns": pa.list_(pa.string()),
        "createdTime": pa.int64(),
        "configuration": _WORDS,
    },
    "sidecar": {"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()},
    "add": _FILE,
    "remove": {"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_()},
    "txn": {"appId": pa.string(), "version": pa.int64()},
}


def replace_log(table: Path, kind: str) -> None:
    """Put a checkpoint in place of a log without removed files; ``kind``: json, parquet, or classic, by its name."""
    log = table / "_delta_log"
    versions = sorted(log.glob("*.json"))
    last = len(versions) - 1
    actions = [json.loads(line) for path in versions for line in path.read_text().splitlines()]
    found = {kind: [one[kind] for one in actions if kind in one] for kind in ("protocol", "metaData", "add")}
    protocol = found["protocol"][-1]
    for word in ("readerFeatures", "writerFeatures"):
        protocol[word] = sorted({*protocol[word], "v2Checkpoint"})
    side = log / "_sidecars" / f"{_NAME}.parquet"
    side.parent.mkdir()
    pq.write_table(_table([{"add": {**one, "dataChange": False}} for one in found["add"]], ["add"]), side)
    part = {"path": side.name, "sizeInBytes": side.stat().st_size, "modificationTime": 0}
    lines: list[dict[str, Any]] = [
        {"checkpointMetadata": {"version": last}},
        {"protocol": protocol},
        {"metaData": found["metaData"][-1]},
        {"sidecar": part},
    ]
    name = f"{last:020d}.checkpoint"
    if kind == "json":
        (log / f"{name}.{_NAME}.json").write_text("".join(json.dumps(each) + "\n" for each in lines))
    else:
        pq.write_table(_table(lines, list(_TYPES)), log / f"{name}{'' if kind == 'classic' else f'.{_NAME}'}.parquet")
    (log / "_last_checkpoint").write_text(json.dumps({"version": last, "size": len(lines)}))
    for path in versions[:-1]:
        path.unlink()


def _table(lines: list[dict[str, Any]], kinds: list[str]) -> pa.Table:
    return pa.table({kind: _column([one.get(kind) for one in lines], kind) for kind in kinds})


def _column(values: list[dict[str, Any] | None], kind: str) -> pa.Array:
    types = _TYPES[kind]
    rows = [None if one is None else {name: _value(one.get(name)) for name in types} for one in values]
    return pa.array(rows, pa.struct(types.items()))


def _value(value: Any) -> Any:
    """Return a value as Arrow takes it: words of a map as pairs."""
    if not isinstance(value, dict) or "storageType" in value:
        return value
    if "provider" in value:
        return {**value, "options": list(value["options"].items())}
    return list(value.items())
