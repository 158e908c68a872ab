"""A REST catalog on loopback, over a catalog of pyiceberg: the part of Iceberg's specification that tables need."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import CommitTableRequest
from pyiceberg.typedef import IcebergBaseModel


def _handler(catalog: Any, requests: list[str]) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        """Answers requests, one after the other."""

        def log_message(self, *_args: Any) -> None:
            """Say nothing."""

        def _answer(self, status: int, content: Any = None) -> None:
            body = b"" if content is None else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _refuse(self, status: int, kind: str) -> None:
            self._answer(status, {"error": {"message": kind, "type": kind, "code": status}})

        def _table(self, metadata: Any, location: str | None) -> None:
            found = {"metadata": json.loads(IcebergBaseModel.model_dump_json(metadata)), "config": {}}
            self._answer(200, found | ({"metadata-location": location} if location else {}))

        def do_GET(self) -> None:
            """Say what is there."""
            parts = [unquote(part) for part in self.path.partition("?")[0].strip("/").split("/")]
            requests.append(f"{self.command} {self.path}")
            with lock:
                match parts:
                    case ["v1", "config"]:
                        self._answer(200, {"defaults": {}, "overrides": {}})
                    case ["v1", "namespaces", name]:
                        is_there = catalog.namespace_exists(name)
                        if is_there:
                            self._answer(200, {"namespace": [name], "properties": {}})
                        else:
                            self._refuse(404, "NoSuchNamespaceException")
                    case ["v1", "namespaces", namespace, "tables", name]:
                        try:
                            table = catalog.load_table((namespace, name))
                        except NoSuchTableError:
                            self._refuse(404, "NoSuchTableException")
                        else:
                            self._table(table.metadata, table.metadata_location)
                    case _:
                        self._refuse(404, "NotFound")

        do_HEAD = do_GET  # noqa: N815 - the name that the base class calls

        def do_POST(self) -> None:
            """Make or commit a table."""
            parts = [unquote(part) for part in self.path.strip("/").split("/")]
            requests.append(f"POST {self.path}")
            content = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                match parts:
                    case ["v1", "namespaces", namespace, "tables"]:
                        request = CreateTableRequest.model_validate({"location": None, **json.loads(content)})
                        staged = catalog._create_staged_table(
                            (namespace, request.name),
                            request.table_schema,
                            request.location,
                            request.partition_spec,
                            request.write_order,
                            request.properties,
                        )
                        self._table(staged.metadata, None)
                    case ["v1", "namespaces", namespace, "tables", name]:
                        change = CommitTableRequest.model_validate_json(content)
                        named = SimpleNamespace(name=lambda: (namespace, name))
                        try:
                            done = catalog.commit_table(named, change.requirements, change.updates)
                        except CommitFailedException:
                            self._refuse(409, "CommitFailedException")
                        else:
                            self._table(done.metadata, done.metadata_location)
                    case _:
                        self._refuse(404, "NotFound")

    return Handler


@contextmanager
def serving(catalog: Any) -> Iterator[tuple[str, list[str]]]:
    """Serve a catalog; yield the URI, and the list of requests."""
    requests: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(catalog, requests))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
