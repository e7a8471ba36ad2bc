"""What each API asks of the authorizer before its handler runs, and what it hides from the answer."""
