# The types of ``drey.selectors``, which is ``engine.selectors``.
from engine.column_expressions.selectors import *
