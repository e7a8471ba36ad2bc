"""What must be done, from what is wanted and what is seen. Pure: no clock, no network, no Kubernetes.

Converged input gives a plan without actions; a property test says so for every reconciler.
"""
