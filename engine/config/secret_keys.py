"""Settings that are secrets: their values appear in no log and in no answer.

Held by: tests/rest/test_job_detail_routes.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.config.loader import PREFIX, Configuration

HIDDEN = "******"
_WORDS = r"password|passwd|fsspec|secret(?!-file)|token(?!-file)|webhook\.url|(api|access|account)-?key|credential"
_SECRET_KEY = re.compile(_WORDS, re.IGNORECASE)


def is_secret(key: str) -> bool:
    """Whether the value of a key must not be shown."""
    return _SECRET_KEY.search(key) is not None


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable is a setting whose value must not be shown."""
    return name.startswith(PREFIX) and is_secret(name.removeprefix(PREFIX).replace("_", "-"))


def shown_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings by key, secrets hidden."""
    return {key: HIDDEN if is_secret(key) else settings[key] for key in sorted(settings)}


def shown_text(configuration: Configuration, key: str) -> str | None:
    """Return the value of a key as text, hidden when it is a secret."""
    return HIDDEN if is_secret(key) else configuration.text(key)
