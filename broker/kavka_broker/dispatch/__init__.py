"""Calls the handlers: from a frame to the pieces of its answer, with access rules and the audit trail around them."""
