# The types of ``drey.examples.generate_instruments``, which is ``engine.examples.generate_instruments``.
from engine.examples.generate_instruments import *
