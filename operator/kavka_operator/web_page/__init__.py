"""What the pages of Kavka share: the operator's console, and that of `kavka console`."""
