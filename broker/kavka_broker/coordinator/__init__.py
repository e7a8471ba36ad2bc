"""The coordinator of groups: the shell around `core.group`."""
