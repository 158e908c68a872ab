"""Delta tables of which the log is written by hand, for features that no writer here has."""

import json
import struct
import zlib
from urllib.parse import quote

import pyarrow.parquet as pq


class HandmadeTable:
    """A table made of Parquet files and a log, a version a call of ``commit``."""

    def __init__(self, place, fields, *, features=(), partition_by=(), configuration=None):
        self.place = place
        self._version = 0
        (place / "_delta_log").mkdir(parents=True)
        schema = json.dumps({"type": "struct", "fields": fields})
        metadata = {
            "id": "00000000-0000-0000-0000-000000000001",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": list(partition_by),
            "configuration": configuration or {},
            "createdTime": 0,
        }
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
        protocol |= {"readerFeatures": list(features), "writerFeatures": list(features)}
        self._actions = [{"protocol": protocol}, {"metaData": metadata}]

    def change(self, fields, configuration=None):
        """Let the table have other columns."""
        metadata = dict(next(each["metaData"] for each in self._actions if "metaData" in each))
        metadata["schemaString"] = json.dumps({"type": "struct", "fields": fields})
        self._actions.append({"metaData": metadata})

    def add(self, table, name, values=None, stats=None, vector=None):
        """Write a file, or name one of before with other deleted rows."""
        path = self.place / name
        if table is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path, row_group_size=100)
        action = {
            "path": quote(name),
            "partitionValues": values or {},
            "size": path.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps(stats or {"numRecords": pq.read_metadata(path).num_rows}),
        }
        if vector is not None:
            action["deletionVector"] = self._vector(vector, name)
        self._actions.append({"add": action})

    def commit(self):
        """Write a version of the log."""
        text = "\n".join(map(json.dumps, self._actions))
        (self.place / "_delta_log" / f"{self._version:020d}.json").write_text(text)
        self._version += 1
        self._last, self._actions = self._actions, []

    def _vector(self, rows, name):
        data = encoded_rows(rows)
        path = self.place / f"{name.replace('/', '_')}.dv"
        path.write_bytes(b"\1" + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data)))
        return {
            "storageType": "p",
            "pathOrInlineDv": f"file://{path}",
            "offset": 1,
            "sizeInBytes": len(data),
            "cardinality": len(rows),
        }


def encoded_rows(rows):
    """Return row numbers as a RoaringBitmapArray in its portable form, of arrays only."""
    containers = {}
    for row in sorted(rows):
        containers.setdefault(row >> 16, []).append(row & 0xFFFF)
    bitmap = struct.pack("<ii", 12346, len(containers))
    bitmap += b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in containers.items())
    offset = len(bitmap) + 4 * len(containers)
    for low in containers.values():
        bitmap += struct.pack("<I", offset)
        offset += 2 * len(low)
    bitmap += b"".join(struct.pack(f"<{len(low)}H", *low) for low in containers.values())
    return struct.pack("<iqi", 1681511377, 1, 0) + bitmap


def field(name, data_type, physical=None, number=None, **metadata):
    """Return a field of a schema of Delta."""
    if physical is not None:
        metadata["delta.columnMapping.physicalName"] = physical
        metadata["delta.columnMapping.id"] = number
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}
