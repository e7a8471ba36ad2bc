"""Real processes, real faults, and a judge: what `make chaos` runs. The account is in docs/explanation/simulation.md."""
