"""Configuration: every key is declared once, typed and described, and each value knows where it came from.

    options.py      the registry: one constant an option
    debug_options.py  those for tests
    config_option.py  ConfigOption(key, type, default, description): how its text is read
    durations.py    "100 ms", "10 s", "5 min"
    ports.py        "8081", "8081-8090"
    sizes.py        "16mb", "32 kb", "1g"
    config_file.py  config.yaml as dotted keys, none of them twice
    home.py         a checkout or an installation: folders of conf, of scripts, of what is delivered
    loader.py       layers (file, environment, command line, script) -> Configuration
    storage_options.py  what opens object stores
    process_keys.py       options that the processes of a cluster read, and no job
    operating_options.py  users, a webhook, what a leader does beside its jobs
    limit_options.py  what a job, or all jobs of a user, may take
    sql_options.py  those of queries; flight_sql_options.py, lineage_options.py: of the rooms
    network_options.py  where processes listen and are reached
    secret_keys.py  which values are never shown
    command_line.py what ``flink-run -D`` and ``-p`` said, for the script that runs in the same process

Order, weakest first: defaults, ``conf/config.yaml``, ``DREY_*`` variables, ``-D``/``-p``, the script.
"""
