# The types of ``drey.examples``, which is ``engine.examples``: of the module whose names are imported.
