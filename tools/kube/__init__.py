"""A real Kubernetes from pinned Go modules: the programs that the tests (`tests/kube`) and `e2e` run.

`go/` is the module: its go.mod and go.sum pin every version; `kind/` pins kind, for `make e2e CLUSTER=kind`.
`programs.py` builds a program once and keeps it in the cache; `python -m tools.kube` builds those that the tests need.

To raise the version: k8s.io/kubernetes 1.X.Y asks for its staging modules as v0.0.0, so go.mod replaces each of them
by v0.X.Y; helm and CoreDNS have to be made against the same minor version. Then `go mod tidy`. Kubernetes 1.34 is the
last that runs on control groups of version 1 without being asked.
"""
