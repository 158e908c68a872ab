"""A catalog as data without secrets, which travels with a job, and the catalog again in the process that commits.

    place = described(catalog, stores)              CatalogPlace: a name, a folder, or properties without what is secret
    opened(place, "write_iceberg")                  the same object in this process, else the catalog of the place

A catalog with properties that are secrets (credentials, tokens, keys, a password in a URI) is opened in the process
that was given them, and in no other. On a cluster it is passed by its name, which every process finds in its own
configuration of pyiceberg: a file ~/.pyiceberg.yaml, or variables such as PYICEBERG_CATALOG__LAKE__URI.

Held by: tests/iceberg_tables/test_catalog_place.py
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from engine.errors import ConfigurationError
from engine.files.store_access import StoreAccess
from engine.iceberg_tables.tables import IO_CLASS, catalog_of, load_catalog

#: parts of the names of properties that are secrets
_SECRET: Final = re.compile(r"credential|token|secret|password|key|sas|session|auth|header|signer", re.IGNORECASE)
#: a password within a URI
_PASSWORD: Final = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")


class CatalogPlace(msgspec.Struct, frozen=True):
    """A catalog without its secrets."""

    name: str = ""
    folder: str = ""
    properties: dict[str, str] = {}
    #: True if secrets were left out, or if the catalog is an object that properties do not make
    is_of_process: bool = False


#: catalogs of this process, by their places as JSON
_opened: Final[dict[bytes, Any]] = {}


def described(catalog: Any, stores: StoreAccess) -> tuple[CatalogPlace, Any]:
    """Return the place of a catalog as a user passes it, and the catalog. Raises: ConfigurationError."""
    found = load_catalog("default" if catalog is None else catalog, stores)
    folder = getattr(found, "folder", "")
    if folder:
        place = CatalogPlace(folder=folder)
    elif catalog is None or isinstance(catalog, str):
        # What else the name stands for every process finds in its own configuration.
        kept = {name: text for name, text in found.properties.items() if name == IO_CLASS}
        place = CatalogPlace(found.name, "", kept)
    else:
        texts = {key: str(value) for key, value in found.properties.items()}
        shown = {key: _PASSWORD.sub(r"\1@", value) for key, value in texts.items() if not _SECRET.search(key)}
        place = CatalogPlace(found.name, "", shown, shown != texts or (not isinstance(catalog, dict) and not shown))
    _opened[msgspec.json.encode(place)] = found
    return place, found


def opened(place: CatalogPlace, call: str) -> Any:
    """Return the catalog of a place. Raises: ConfigurationError, where this process has not what it needs."""
    found = _opened.get(msgspec.json.encode(place))
    if found is not None:
        return found
    if place.is_of_process:
        raise ConfigurationError(
            f"{call}: secrets of the catalog {place.name!r} stay in the process that was given them; on a cluster pass"
            f" catalog={place.name!r}, and configure it for each process in ~/.pyiceberg.yaml or by variables"
            f" PYICEBERG_CATALOG__{place.name.upper()}__..."
        )
    if place.folder:
        return catalog_of(place.folder, call)
    return catalog_of({"name": place.name, **place.properties} if place.properties else place.name, call)
