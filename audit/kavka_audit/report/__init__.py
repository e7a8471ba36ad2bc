"""The answers for a person: a line each, and a page of HTML with the evidence."""
