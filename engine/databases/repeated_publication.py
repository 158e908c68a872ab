"""A publication that is repeated while the database is out of reach or busy: it does nothing twice.

Held by: tests/databases/test_write_database.py
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from engine.errors import ResourceError

_log = logging.getLogger(__name__)
#: seconds between the attempts
PAUSES_S: Final = (0.1, 0.5, 2.0, 5.0, 10.0, 20.0)


def repeated(publish: Callable[[], None], what: str) -> None:
    """Publish; raise ResourceError when the database does not let it for half a minute and more."""
    for pause_s in PAUSES_S:
        try:
            return publish()
        except ResourceError as error:
            _log.warning("%s cannot be published yet: %s", what, error)
            time.sleep(pause_s)
    return publish()
