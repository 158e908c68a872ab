"""Leader services: which process may act, under which number, and where the leader is found.

    interfaces.py   LeaderContender, LeaderElection, LeaderRetrieval and its listener, StateHandleStore: protocols
    information.py  LeaderInformation: epoch, session, address
    embedded.py     one process: grants at once, with an epoch that only grows
    standalone.py   one fixed leader at a known address
    zookeeper_*.py  several processes: _session (connection, thread, lease), _election, _retrieval, _state, _record,
                    _settings, _hosts, _preflight (why there is no session), _close (the end of kazoo's client)
    session_end.py  the session of a process that died, closed by one that knows it
    memory_state.py, zookeeper_state.py   what leaders keep for the next leaders; state_limits.py
    services.py     HaServices by type

A component acts only between ``grant_leadership`` and ``revoke_leadership``. The epoch that it was granted is part of
every message and every durable write; a receiver refuses lower epochs. So a leader that does not know yet that it lost
cannot do harm.

This package imports nothing from ``engine``.
"""
