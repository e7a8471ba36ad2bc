"""A broker as a member of its cluster: it registers, gives signs of life, and asks the controller for changes."""
