"""Clusters as pods: `objects` builds what is applied, `observe` reads it; both are pure. `live` asks the API server."""
