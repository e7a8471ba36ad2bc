"""Real processes, real faults, and a judge: what `make chaos` runs. The account: docs/explanation/simulation.md."""
