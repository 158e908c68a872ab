"""The transport: how the rows of an exchange get from one TaskManager to another.

    this process                                               another one
    InputGate ─ RemoteInputChannel ─ ConnectionManager ══════► DataServer ─ ServerConnection ─ subpartition views
                frames of rows  ◄──────────────────────────────  as many as there are credits
                credits         ──────────────────────────────►  one for each free buffer of the reader

The room is above the exchange, which works without it: the server reads the partitions of its process as a local
channel does, and a gate opens remote channels by an interface of its own (``exchange.input_channel``).

    data_plane                  DataPlane: both ends, for one process; data_address, its address as text
    remote_input_channel        RemoteInputChannel, RemoteReads: a gate's channels to other processes
    connection_manager  client_connection  receiving
                                the consumers' end: frames to the buffers of channels, credits for free ones
    data_server  server_connection
                                the producers' end: views of partitions to frames, as credits allow
    greeter  handshake  greeting_channel  read_request
                                how a connection begins, plain or within TLS; what is asked for and refused
    frames  credit              what is on the wire; credit-based flow control: how much may be sent
    wire                        its bytes: a plain socket, or TLS

Everything that a peer sends is checked before it is used: sizes, checksums, credits, and the rows themselves
(``records.row_check``). A peer that breaks the protocol loses its connection, and its channels say why.
"""
