"""The rules of authorization: what access rules say, which of them match, and what follows for a request."""
