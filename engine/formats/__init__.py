"""Formats: what rows are read from and written as, one entry a format.

source_format.py       SourceFormat: what planning and tasks ask of a source
source_reader.py       the interface of readers
sink_format.py         SinkFormat: what is asked of a sink; the interface of writers
registry.py            ``format_of(spec)``: the entry of a source
held_states.py         states of places that change, which a job holds while it reads
output_check.py        the outputs of a job: where each lands, and which are refused
split_pruning.py       splits that a filter leaves, by bounds of their values
table_target.py        tables that jobs change in place: merges and optimizations ask them
merged_rows.py         rows of a merge in a writer: those that are written, and what becomes of others
patched_rows.py        arrays with other values at some places

The entries lie beside their readers: ``engine/csv/csv_format.py``, ``engine/parquet/parquet_format.py``, and the
modules ``*_format.py`` of ``engine/connectors``.
"""
