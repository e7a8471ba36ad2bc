"""Transactions as their coordinator decides them, over plain data: `coordinator` carries it out."""
