"""A backend of Ibis: its expressions become queries of SQL, which an Environment runs. ``ibis.drey.connect()``.

backend.py     connections: tables, views, files, rows as they come
compiler.py    operations of Ibis in our SQL, and those that there are not
"""

from engine.ibis_backend.backend import Backend

__all__ = ["Backend"]
