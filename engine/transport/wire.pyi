import ssl
from typing import final

@final
class TlsSession:
    def __new__(cls, ssl_object: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> TlsSession: ...
