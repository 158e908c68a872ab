# The types of ``drey.errors``, which is ``engine.errors``.
from engine.errors import *
