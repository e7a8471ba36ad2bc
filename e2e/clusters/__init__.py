"""The kinds of Kubernetes that the tests can run on, a module each."""
