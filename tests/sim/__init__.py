"""A cluster in one process, one thread and one seed: loop, network, disks, clients, faults, and what must hold.

    python -m tests.sim --seeds 100            # a hundred worlds
    python -m tests.sim --first 4711 --seeds 1 # one of them again, with its story

The broker is the real one, from `runtime.server` down to the bytes of its logs. Replaced are the loop (`loop`), the
network (`network`), the disk (`tests.support.sim_disk`), clocks and chance (`node`). `faults` draws what goes wrong,
`invariants` says after each step what must hold, `history` judges at the end what the clients have seen, and
`teeth` proves on planted bugs that the whole would notice. `observed` is how the checks
read logs, `watchdog` ends what would not end by itself, `workers` and `ledger` run many seeds.
"""
