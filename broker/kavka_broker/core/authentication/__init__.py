"""Who a client is: what a listener asks of it, and the steps by which it says so. Pure."""
