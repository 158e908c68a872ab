"""Layers of settings become one Configuration.

    defaults < conf/config.yaml < DREY_* variables < -D and -p < Environment(config=...)

The file is YAML, nested or with dotted keys, the two being equal. An unknown key is an error that suggests the
nearest one. A variable's name is the key in capitals with ``_`` for ``.`` and ``-``:
``DREY_PARALLELISM_DEFAULT=4``. Each value keeps its origin.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.config.command_line import current_command_line
from engine.config.config_file import flatten, read_config_file
from engine.config.config_option import ConfigOption
from engine.config.home import conf_folder
from engine.config.options import HEARTBEAT_INTERVAL, HEARTBEAT_TIMEOUT, all_options, find_option
from engine.config.storage_options import STORAGE_KEYS
from engine.errors import ConfigurationError
from engine.near_names import did_you_mean

#: environment variables that are not options: places of files, access to hosts, the build
_OTHER_VARIABLES = frozenset(
    {
        *("DREY_CONF_DIR", "DREY_LOG_DIR", "DREY_PID_DIR", "DREY_SSH_OPTS", "DREY_HOME"),
        *("DREY_BUILD", "DREY_ASAN", "DREY_ANNOTATE"),
    }
)
PREFIX = "DREY_"


class Configuration:
    """Effective settings: typed values by option, text by key, and where each came from."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._texts: dict[str, str] = {}
        self._origins: dict[str, str] = {}
        #: settings of object stores that calls were given
        self._bucket_texts: dict[str, str] = {}

    def set(self, key: str, value: object, origin: str) -> None:
        """Set a key, checked and typed; an unknown one raises ConfigurationError naming the nearest."""
        option = find_option(key)
        if option is None:
            hint = did_you_mean(key, [known.key for known in all_options()], 1, likeness=0.5)
            raise ConfigurationError(f"unknown key {key!r} ({origin}){hint}")
        self._values[key] = option.parse(value, origin)
        self._texts[key] = str(value).lower() if isinstance(value, bool) else str(value)
        self._origins[key] = origin

    def get(self, option: ConfigOption) -> Any:
        """Return the typed value of an option (its default when it is not set, None when it has none)."""
        if option.key in self._values:
            return self._values[option.key]
        return option.default_value

    def origin(self, key: str) -> str:
        """Return the origin of a key's value."""
        return self._origins.get(key, "default")

    def text(self, key: str) -> str | None:
        """Return the value of a key as it was written, or its default."""
        option = find_option(key)
        return self._texts.get(key, option.default if option else None)

    def as_texts(self) -> dict[str, str]:
        """Return the values that were set, by key, as text: the form that travels with a job.

        What opens object stores is each process's own, and stays there.
        """
        return {key: text for key, text in self._texts.items() if not key.startswith(STORAGE_KEYS)}

    def storage_texts(self) -> dict[str, str]:
        """Return the values that open object stores, by key; with secrets."""
        found = {key: text for key, text in self._texts.items() if key.startswith(STORAGE_KEYS)}
        return {**found, **self._bucket_texts}

    def add_storage_texts(self, texts: Mapping[str, str]) -> None:
        """Take settings of single buckets, which are no options: neither shown nor sent."""
        self._bucket_texts.update(texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)


def configuration_from_texts(texts: Mapping[str, str], origin: str = "job") -> Configuration:
    """Return the Configuration of settings that travelled as text."""
    configuration = Configuration()
    for key, text in texts.items():
        configuration.set(key, text, origin)
    return configuration


def variable_name(key: str) -> str:
    """Return the environment variable of a key."""
    return PREFIX + key.upper().replace(".", "_").replace("-", "_")


def config_directory() -> Path | None:
    """Return the folder of config.yaml (see ``home``); None when there is none."""
    folder = conf_folder()
    return folder if folder.is_dir() else None


def load_configuration(script: Mapping[str, object] | None = None) -> Configuration:
    """Return the effective configuration of this process with what a script sets on top."""
    if not isinstance(script, Mapping | None):
        raise ConfigurationError(f"config={script!r}: expected a dict of keys and values")
    configuration = Configuration()
    folder = config_directory()
    if folder is not None and (folder / "config.yaml").is_file():
        for key, value in read_config_file(folder / "config.yaml").items():
            configuration.set(key, value, str(folder / "config.yaml"))
    by_variable = {variable_name(option.key): option.key for option in all_options()}
    for name, value in sorted(os.environ.items()):
        if name.startswith(PREFIX) and name not in _OTHER_VARIABLES:
            if name not in by_variable:
                raise ConfigurationError(f"unknown environment variable {name}{did_you_mean(name, by_variable)}")
            configuration.set(by_variable[name], value, f"${name}")
    for key, text in current_command_line().options.items():
        configuration.set(key, text, "command line")
    of_script: set[str] = set()
    for key, value in flatten(script or {}):
        if key in of_script:
            raise ConfigurationError(f"config: {key} is set twice, once nested: leave one")
        of_script.add(key)
        configuration.set(key, value, "script")
    _check_heartbeats(configuration)
    return configuration


def _check_heartbeats(configuration: Configuration) -> None:
    """Raise ConfigurationError where a process would count as lost before its first heartbeat is due."""
    interval, timeout = HEARTBEAT_INTERVAL.key, HEARTBEAT_TIMEOUT.key
    if not 0 < configuration.get(HEARTBEAT_INTERVAL) < configuration.get(HEARTBEAT_TIMEOUT):
        raise ConfigurationError(
            f"{interval} ({configuration.text(interval)}, {configuration.origin(interval)}) must be less than "
            f"{timeout} ({configuration.text(timeout)}, {configuration.origin(timeout)}), a fifth of it or so"
        )
