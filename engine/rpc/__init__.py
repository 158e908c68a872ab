"""RPC: typed messages between single-threaded endpoints on an event loop.

request.py        Request: the base of all messages, which names its reply
gateway.py        Gateway, RpcService: what callers see, whatever the transport
endpoint.py       RpcEndpoint: handlers by message type, one loop, no locks
leadership.py     Leadership: what a process gives the components that act while it leads
fencing.py        LeaderFence, FollowerFence: the epoch of a message against the one in force
codec.py          MessageCodec: messages, replies and errors as msgpack
fingerprint.py    digits that tell messages of one form from those of another
program.py        Program: which Drey a process runs, said and compared when two of them begin to speak
refusals.py       Refusals: callers that this process has turned away, for logs, metrics and pages
credentials.py    Credentials: the cluster secret, signed requests, sealed replies, proofs for raw sockets
secret_file.py    files that hold a secret: made whole, readable by their owner alone
read_access.py    ReadAccess: the token that lets browsers, Prometheus and curl read
audit.py          audited(routes): a record of requests that change something
principal.py      Principal, Role: the user that a request comes from
user_tokens.py    UserTokens: users by their tokens, whose hashes lie in a file
http_messages.py  Route, Access, HttpRequest, HttpResponse
http_server.py    HttpServer: the server of a process, with all checks
http_connection.py  its connections, bounded and timed
http_service.py   HttpRpcService: transport between processes: order, epoch, deadline, cancellation
greeting.py       how a connection of calls begins: a request to the HTTP server, proofs and keys of both sides
frames.py         frames of such a connection, each with a proof that is good once
calling_connection.py  CallingConnection: the end of the process that calls, kept from call to call
called_connection.py   CalledConnection: the end of the process that answers
calling_requests.py  CallingRequests: calls to processes whose programs know no frames, a request each
called_requests.py   CalledRequests: their calls, answered
http_forwarding.py  passing a request on to another process
webhook.py        Webhook: texts for another program, signed and sent again
tls.py            mutual TLS from security.ssl.*
local_gateway.py  transport between endpoints of one process
health.py         Health: /healthz and /readyz of a process
heartbeat.py      HeartbeatMonitor: which processes have been silent for too long
errors.py         how a transport can fail
"""
