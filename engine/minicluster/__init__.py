"""A whole cluster in one process: what runs a script's jobs when no other target is named.

mini_cluster.py         MiniCluster: the client's side, jobs let in one after the other; one for each configuration
cluster_components.py   ClusterComponents: leader election, dispatcher, resource and task manager, in order
"""

from engine.minicluster.mini_cluster import (
    MiniCluster,
    close_mini_cluster,
    close_mini_clusters,
    mini_cluster,
    release_mini_clusters,
)

__all__ = ["MiniCluster", "close_mini_cluster", "close_mini_clusters", "mini_cluster", "release_mini_clusters"]
