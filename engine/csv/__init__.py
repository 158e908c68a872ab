"""CSV: read in splits that respect quotes, and written.

client, when the plan is built         task, when the job runs
source.py  sample.py  splits.py        reader.py  parse.py  columns.pyx        writer.py  row_format.pyx

csv_format.py      the entry (``engine.formats``)
style.py           what write_csv is told of the form of values
options.py         what read_csv is told; dialect.py: delimiter and quote
text.py            the text of a file: opened, behind lines that are skipped, without comments
header.py          names of columns, and which column of a file is which
encoding.py        other encodings than UTF-8
written_numbers.py decimal commas, thousands in groups; hexadecimal numbers, which are none
written_dates.py   dates and times in a format of the file's own
inference.py       types of a file without a schema
advice.py          warnings: another delimiter, a header, another encoding
added_rows.py      rows beside files that are there
rejects.py         malformed records as rows, where they are to be kept
scan.pyx           where records begin and end
columns.pyx        ordinary blocks straight into columns; the rest is for parse.py
ragged.pyx         records with too few or too many fields, where they are to be read
long_records.py    how long a record is that does not end within a block
field_start.pxd    where a quote opens a field: for scan and ragged
quote_mask.pxd     quotes and newlines of a block as bit masks; field_index.pxd: delimiters, too; prefix_xor.pxd: within
                   quotes; field_numbers.pxd: numbers of their digits
row_format.pyx     rows as text; number_text.pxd, text_copy.pxd
"""
