# The types of ``drey.selectors``.
from engine.selectors import *
