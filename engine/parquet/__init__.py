"""Parquet: row groups read within the memory that is reserved, and written.

client, when the plan is built         task, when the job runs
source.py  sample.py  key_sample.py    reader.py  writer.py

reader.py              a task's loop over its splits; scan_request.py: what it wants of every file, scan_memory.pyx:
                       what it may hold
file_scan.py           the rows of one open file that it wants

column_forms.py        which columns of a file get dictionaries, statistics, codecs
spliced_file.py        a file that is another one but for some columns of some row groups (footer_fields.py)
patched_file.py        a table's file with the rows of it that change, of any format of tables
small_files.py         each of very many small files, read at once
parquet_format.py      the entry (``engine.formats``)
pruning.py             row groups that filters leave, before a job runs
unread_files.py        very many files, of which a filter may leave a few: footers are read for plans
footers.py             one footer for all readers of a file, once it is known to be none that pyarrow ends the process
                       for (footer_check.pyx)
row_group_bounds.py    row groups that a filter leaves, by what footers say of their values
kept_answers.py        what both say of a predicate, kept for the next scans of a file
page_bounds.py         rows that it leaves by what the file says of pages (page_index.pyx, row_ranges.py), and values
                       that row groups do not have (split_block_filter.pyx)
top_groups.py          row groups that may have rows among the first n
row_filter.py          rows that it leaves, before all of their columns are read
filter_mask            the mask of a batch's rows: predicate and tests, without a Python frame
filter_steps.py        which column of a filter is read before its others
sample.py              what a sample of rows says of the columns; kept_samples.py: sampled columns for later plans
key_sample.py          a better sample of key columns
pages.py               whether pages can be what their headers say (page_sizes.pyx), and what reading them holds
column_passes.py       row groups whose columns do not fit side by side
fetched_chunks.py      a file's descriptor for kernels; of a store, the chunks that were fetched (fetched_bytes.pyx), or
                       those of their pages that are needed (page_ranges.py)
index_reads.py         page indexes with few requests
read_ahead.py          of files in stores, row groups that are fetched while others are read
open_scans.py          the files that a reader has open; table_scan.py: of tables whose files differ
open_file.py           an open file: columns of a row group as streams (column_streams.py), decoded here or by pyarrow
stored_chunks.py       which columns are decoded here; source_types.py: as what they come out

Decoded here, without the GIL:

group_look.pyx         a row group that is one batch, with its filter; group_runs.py: several, where it leaves few rows
group_reader.pyx       columns of a row group as batches of the rows that are wanted
merged_texts.pyx       one dictionary for the codes of several row groups
chunk_pages.pyx        the pages of a column, read and opened (page_header.pyx, compact_protocol.pyx, page_kernels.pxd)
page_rooms.pyx         memory of pages, kept for the columns that are read next
chunk_values.pyx       values of rows that are wanted, taken out of them (value_kernels.pxd)
"""
