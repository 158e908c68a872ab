"""ConfigOption: what is declared of a key, how its text is read, and the table of all of them.

    declared(key, type, default, description) ─► ConfigOption, in the table

``ConfigOption.parse`` turns the text of a file, a variable or the command line into the option's type and says what
is wrong with a value that does not fit. The table is filled by ``options.py`` when it is imported, and only read then.

Held by: tests/config/test_loader.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from engine.config.durations import parse_duration_ms, parse_interval_ms
from engine.config.ports import parse_ports
from engine.config.sizes import parse_size
from engine.errors import ConfigurationError
from engine.network_address import is_ipv6, plain_host


def _parse_bool(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("true", "yes", "on", "1"):
        return True
    if lowered in ("false", "no", "off", "0"):
        return False
    raise ConfigurationError(f"{text!r} is neither true nor false")


def _parse_host(text: str) -> str:
    host = plain_host(text.strip())
    if not host or any(letter.isspace() or letter in ",/[]" for letter in host):
        raise ConfigurationError(f"{text!r} is no host: write a name or an address")
    if ":" in host and not is_ipv6(host):
        raise ConfigurationError(f"{text!r} is no host: write a name or an address, without a port")
    return host


def _parse_hosts(text: str) -> tuple[str, ...]:
    return tuple(_parse_host(part) for part in text.split(",") if part.strip())


_PARSERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "bool": _parse_bool,
    "string": str,
    "size": parse_size,
    "duration": parse_duration_ms,
    "duration, or -1": parse_interval_ms,
    "ports": parse_ports,
    "host": _parse_host,
    "hosts": _parse_hosts,
}


class ConfigOption(msgspec.Struct, frozen=True, dict=True):
    """One option. ``default`` is text as a person would write it, or None where there is none."""

    key: str
    kind: str
    default: str | None
    description: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None

    @cached_property
    def default_value(self) -> Any:
        """The default as the option's type."""
        return None if self.default is None else self.parse(self.default, "default")

    def parse(self, value: object, origin: str) -> Any:
        """Return ``value`` as the option's type (size: bytes, duration: milliseconds), or raise."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        try:
            parsed = _PARSERS[self.kind](text)
        except ValueError as error:
            reason = str(error) if isinstance(error, ConfigurationError) else f"{text!r} is not of type {self.kind}"
            raise ConfigurationError(f"{self.key} ({origin}): {reason}") from None
        if self.choices and parsed not in self.choices:
            raise ConfigurationError(f"{self.key} ({origin}): {text!r} is not one of {', '.join(self.choices)}")
        if self.minimum is not None and parsed < self.minimum:
            raise ConfigurationError(f"{self.key} ({origin}): {text} is less than {self.minimum:g}")
        return parsed


#: all options by key
OPTIONS: dict[str, ConfigOption] = {}


def declared(
    key: str,
    kind: str,
    default: str | None,
    description: str,
    choices: tuple[str, ...] = (),
    minimum: float | None = None,
) -> ConfigOption:
    """Return a new option, and have it in the table."""
    option = ConfigOption(key, kind, default, description, choices, minimum)
    OPTIONS[key] = option
    return option
