"""`kavka top`: a cluster as a person watches it. `model` and `views` are pure, `sources` asks, `app` is the screen."""
