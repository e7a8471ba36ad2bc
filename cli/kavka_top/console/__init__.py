"""`kavka console`: what `kavka top` shows, and the records of topics, as a page in a browser. It only reads."""
