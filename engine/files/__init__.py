"""Files that users name: read from and written to.

paths.py           files of a path, folder or glob
stored_files.py    objects of stores as a plan found them
file_stamps.py     stamps of files: what differs once a file does
store_access.py    options that a call gives for the stores of its paths
hive.py            files in folders that are named after values: year=2024/
table_formats.py   folders of Delta, Iceberg and Hudi tables, which are not read as files
compression.py     files that are compressed as a whole, read as a stream of their text
packed_streams.py  streams of gzip, bz2 and xz one behind the other
line_blocks.py     blocks of whole lines, of a part of a file or of such a stream
native_files.py    files as pyarrow reads and writes them: its own, or streams where there are no paths
output_file.py     the file of a text sink, compressed or not, gone unless it is finished
"""
