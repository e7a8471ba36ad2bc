"""The rules of client quotas: who is limited by what, how a rate is measured, how long a client waits."""
