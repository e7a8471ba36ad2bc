"""A Kubernetes, with images built here, and the tests that need pods that run.

`make e2e` builds what it needs, brings one node up on this machine, runs `e2e/test_*.py` and takes the node down. It
needs root, Linux and some packages of Debian (`e2e/machine.py` names them), and no registry of images. `CLUSTER=kind`
and `CLUSTER=kubeconfig` run the same tests on others (`e2e/cluster.py`).
"""
