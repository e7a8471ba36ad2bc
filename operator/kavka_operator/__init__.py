"""The Kavka operator: three custom resources become a running cluster."""
