"""What a handler uses: the parts of the node, the client, the table of APIs, and what several answers share."""
