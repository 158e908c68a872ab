"""Connectors: where rows come from and where they go.

client, when the plan is built                      task, when the job runs
engine/csv  engine/parquet                          (both have rooms of their own)
records_source.py records_manifest.py               (Parquet)                      records_writer.py
text_source.py                                      text_reader.py text_lines.py   text_writer.py
fixed_widths.py
json_source.py json_inference.py                    json_reader.py json_blocks.py  json_writer.py
                                                    json_lines.py
                                                    json_types.py json_columns.pyx json_tree.pyx json_text.pxd
                                                    json_fits.py
                                                    (base of both writers:)        line_writer.py
block_source.py                                     block_reader.py                orc_writer.py arrow_writer.py
excel_sheets.py   excel_cells.py   excel_errors.py  excel_sheets.py                excel_writer.py
arrow_source.py   row_source.py                     arrow_reader.py                arrow_writer.py
arrow_files.py         (files that a job has left)

block_files.py         Arrow IPC, ORC and Avro, opened; avro_blocks.py: Avro, by fastavro
path_source.py path_pruning.py                      path_reader.py

their entries (``engine.formats``):
text_format.py json_format.py block_format.py excel_format.py arrow_format.py records_format.py path_format.py
passing_format.py

records_parts.py       what parts say of their columns, and the manifest made of it
records_layout.py      in which order its rows are proven to lie
sink_writer.py         the interface of writers, ``open_sink_writer``
checked_texts.py       texts that are added to files are to be of the type that these are read as
partition_runs.py      where one partition of an output ends, and the folder of each
handed_writer.py       rows for a client in the same process
stream_writer.py       rows for a client that takes them while the job runs
discard_writer.py      no rows at all, for jobs that are measured
"""
