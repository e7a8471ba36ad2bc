"""A real Kubernetes from pinned Go modules: the programs that the tests (`tests/kube`) and `e2e` run.

`go/` is the module: its go.mod and go.sum pin every version. `programs.py` builds a program once and keeps it in the
cache; `python -m tools.kube` builds those that the tests need.
"""
