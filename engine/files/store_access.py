"""Settings by which a call opens stores: those of its environment, and the options that it was given.

    stores = StoreAccess(configuration, GivenOptions(storage_options), "read_delta")
    stores.use_for("s3://bucket/table")      this thread, and the environment's jobs, open the bucket by the options

Options are of buckets: an environment keeps those that its latest call gave for each. They are in no plan, and what
holds them has no text and no pickle that shows them.

Held by: tests/storage/test_options_of_tables.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

from engine.errors import PlanError
from engine.storage.file_systems import LOCAL, file_system_of
from engine.storage.store_client import use_store_settings
from engine.storage.store_options import StorageOptions, bucket_settings

if TYPE_CHECKING:
    from engine.config.loader import Configuration


class GivenOptions:
    """The value of ``storage_options=``, which is not shown and does not leave the process."""

    def __init__(self, value: StorageOptions = None) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "None" if self.value is None else "{...}"

    def __reduce__(self) -> NoReturn:
        raise PlanError(
            "storage_options= stay in the process that was given them: name the table by its path in a function, or"
            " set storage.* in the configuration of each process"
        )


class StoreAccess(NamedTuple):
    """See the module's text."""

    configuration: Configuration
    given: GivenOptions
    call: str

    @property
    def has_options(self) -> bool:
        """Whether the call was given options."""
        return self.given.value is not None

    def use_for(self, *places: str) -> None:
        """Open the stores of places in this thread from now on. Raises: PlanError, ConfigurationError."""
        self.configuration.add_storage_texts(bucket_settings(places, self.given.value, self.call))
        use_store_settings(self.configuration.storage_texts())


def is_in_store(place: str) -> bool:
    """Return whether a path is of another file system than this machine's."""
    return file_system_of(place) is not LOCAL
