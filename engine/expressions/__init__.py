"""Expressions over Arrow batches: what ``col``, ``lit`` and ``when`` mean.

schema_bridge.py   pyarrow.Schema <-> PlanSchema
literals.py        Python values <-> constants of a plan
common_type.py     what two types widen to
column_names.py    what a column may be called
text.py            an expression as short text
binding.py         operands, and how a function binds to types
arithmetic.py comparison.py text_functions.py time_functions.py   the functions
time_zones.py      offsets of a zone by its name, from the tz database
zone_offsets       offsets of any moment, first moments of local times
moments.py         moments as local times of any year and zone; where hours, days, weeks begin
casting.py         casts that differ from Arrow's
decimal_widths.py  how many digits results of decimals have
span_arithmetic.py   durations multiplied and divided, by numbers and by each other
decimal_arithmetic.py  sums, products and remainders of decimals; decimal_kernels has the loops
float_division     // of floats as Python's
float_comparison   floats of two columns, NaN equal to itself and the greatest
conditional_functions.py number_functions.py text_patterns.py   more of them
calendar_functions.py   intervals and differences on the calendar; calendar_kernels has its loops
calendar_units.py    units of times, and what each is worth
text_slices          parts of texts by positions of characters
text_replacement     texts of which one part, found by a regular expression, is replaced
partition_transforms.py  Iceberg's transforms of partitions
divisors.py          greatest common divisors
digest_functions.py  hashes, digests, encodings; byte_transforms has their loops, digest_kernels.pxd the digests
text_distances       edits between texts, and how alike they are; byte_values.pxd: bytes where they lie
character_functions.py  characters, codes and digits; character_kernels has their loops
replaced_values.py   values for others by a mapping
time_buckets.py      begins of spans of several units
calendar_days.py     dates of parts, business days
sequences.py         lists from one value to another by steps
list_sets.py         lists as sets, reversed lists, positions of values
struct_functions.py  structs with other fields, maps and their entries
json_of_values.py    JSON texts of values
time_texts.py      dates and timestamps as texts by a format, and from them
time_directives.py  what a format is made of; moment_writer and moment_reader have the loops
civil_days.pxd     days as dates of the calendar and back
random_numbers.py  rand, row_place
json_texts.py      values out of JSON texts by a path; json_values.py: as a type
text_moments.py    constant texts beside dates and times
nested_functions.py   lists, maps, structs
lambda_functions.py   functions of elements, which are expressions; lambda_bodies.py: those as options of calls
list_parts.py      lists as their elements and back
ordered_pairs.py   a key and a value as bytes of one order, for min_by and max_by
ordered_bytes      their loops
number_kernels     loops over numbers that Arrow has not
argument_kinds.py  which types a kind of argument takes
varying_constants.py  functions whose constants are columns
function_registry.py from a row of the table of functions (graph) to its binder
shared_parts.py    what stands more than once in a projection, computed once
conditional.py     when/then/otherwise
compile.py         expression + schema -> operand
vector_program     expressions as native steps over blocks in the cache
vector_workspace   registers of a run, kept for the next one
vector_steps       one step over one block; its loops are in block_kernels.pxd and text_kernels.pxd
block_vectors      values of a column in the cache, and back
program_run        what each batch passes: its inputs for a program, its mask, the batch made of it
program_builder.py which steps an expression is made of
program_numbers.py program_logic.py   the steps of arithmetic, casts and dates; of conditions and choices
meaning            what of an expression over a schema is kept under
evaluate.py        compiled expressions, predicates, projections over batches
infer.py           types and schemas of expressions
"""
