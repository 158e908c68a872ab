# The types of ``drey.spark``, which is ``engine.spark``.
from engine.spark import *
