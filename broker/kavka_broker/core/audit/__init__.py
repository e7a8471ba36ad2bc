"""Rules of the audit trail: what an event is, and how a trail of events shows that it was changed."""
