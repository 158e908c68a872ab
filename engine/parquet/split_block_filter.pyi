from engine.parquet.index_reads import IndexReads
from engine.storage.file_system import ByteRanges

def may_be_in(file: ByteRanges | IndexReads, position: int, values: list[bytes | None]) -> bool: ...
