"""OtlpSender: one kind of telemetry of a process, sent to ``opentelemetry.endpoint`` by an exporter of the SDK.

    otlp_sender(configuration, "metrics", executor) ─► None, or a sender ─► await send(make) ... ─► close()

Headers, certificates and the time limit are the standard's variables, OTEL_EXPORTER_OTLP_HEADERS and so on;
OTEL_METRICS_EXPORTER or OTEL_TRACES_EXPORTER with the value ``none`` leave one kind out. A request holds one thread,
and nothing waits for it but the next one. The log tells once that a receiver takes nothing, and once that it takes
again.

Held by: tests/rest/test_opentelemetry_export.py
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from engine import __version__
from engine.config.loader import Configuration
from engine.config.operating_options import OPENTELEMETRY_ENDPOINT
from engine.errors import ConfigurationError

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

_log = logging.getLogger(__name__)

Kind = Literal["metrics", "traces"]
_PACKAGE = "opentelemetry.exporter.otlp.proto.http"
#: module and class of the exporter of each kind
_EXPORTERS = {
    "metrics": (f"{_PACKAGE}.metric_exporter", "OTLPMetricExporter"),
    "traces": (f"{_PACKAGE}.trace_exporter", "OTLPSpanExporter"),
}


def otlp_sender(configuration: Configuration, kind: Kind, executor: Executor) -> OtlpSender | None:
    """Return the sender of a kind; None where it is not configured.

    Raises: ConfigurationError where the package is missing or the endpoint is no URL.
    """
    endpoint = configuration.get(OPENTELEMETRY_ENDPOINT)
    if endpoint is None or os.environ.get(f"OTEL_{kind.upper()}_EXPORTER") == "none":
        return None
    key, parts = OPENTELEMETRY_ENDPOINT.key, urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{key} has to be http://HOST:4318 or https://HOST:4318")
    if parts.username or parts.password or parts.query:
        raise ConfigurationError(f"{key} is told in logs: write credentials to OTEL_EXPORTER_OTLP_HEADERS")
    module, name = _EXPORTERS[kind]
    try:
        exporter = getattr(importlib.import_module(module), name)(endpoint=f"{endpoint.rstrip('/')}/v1/{kind}")
    except ImportError as error:
        raise ConfigurationError(f"{key} needs the extra: pip install 'drey-engine[opentelemetry]' ({error})") from None
    return OtlpSender(exporter, kind, executor)


class OtlpSender:
    """The requests of one kind. Thread: the event loop; what is sent is made and sent in the executor."""

    def __init__(self, exporter: Any, kind: Kind, executor: Executor) -> None:
        self._exporter, self._kind, self._executor = exporter, kind, executor
        self._said = _Said()
        #: flag: the last request was not taken
        self._is_failing = False
        self._logger = logging.getLogger(type(exporter).__module__)
        self._logger.addFilter(self._said)

    async def send(self, make: Callable[[], Any]) -> None:
        """Send what the function makes; failures are told and forgotten."""
        try:
            done = await asyncio.get_running_loop().run_in_executor(
                self._executor, lambda: self._exporter.export(make())
            )
            is_failing = done.name != "SUCCESS"
        except Exception as error:  # telemetry is beside the work of the process
            self._said.text, is_failing = f"{type(error).__name__}: {error}", True
        if is_failing and not self._is_failing:
            _log.warning("OpenTelemetry: %s are not taken until further notice: %s", self._kind, self._said.text)
        elif self._is_failing and not is_failing:
            _log.info("OpenTelemetry: %s are taken again", self._kind)
        self._is_failing = is_failing

    def close(self) -> None:
        """Send no more."""
        self._logger.removeFilter(self._said)
        self._exporter.shutdown()


class _Said(logging.Filter):
    """Text of the SDK about the last failure: kept, since the SDK logs each request anew."""

    text = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the text."""
        if record.levelno >= logging.ERROR or not self.text:
            self.text = record.getMessage()
        return False


def resource_of(process: str) -> Resource:
    """Return the attributes of a process; those of the standard's variables win."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    told: dict[str, Any] = {
        "service.namespace": "drey",
        "service.name": f"drey-{process.partition('-')[0] if process.startswith('taskmanager-') else process}",
        "service.instance.id": f"{process}@{os.uname().nodename}:{os.getpid()}",
        "service.version": __version__,
        "host.name": os.uname().nodename,
        "process.pid": os.getpid(),
    }
    return Resource(told).merge(OTELResourceDetector().detect())
