"""Files that users name: read from and written to.

paths.py           files of a path, folder or glob
output_file.py     the file of a text sink, gone unless it is finished
"""
