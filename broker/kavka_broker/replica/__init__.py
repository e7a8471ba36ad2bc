"""The replicas on this broker: which are here, what leaders and followers do, and who reads what."""
