"""A whole cluster in one process: what runs a script's jobs when no other target is named.

mini_cluster.py         MiniCluster: the client's side, jobs let in one after the other; one for each configuration
cluster_components.py   ClusterComponents: leader election, dispatcher, resource and task manager, in order
local_loop.pyx          its event loop, which asks for events from outside now and then
cluster_loop.py         the thread that runs it
"""
