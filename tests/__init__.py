"""All tests of Kavka; `make help` says how to run them."""
