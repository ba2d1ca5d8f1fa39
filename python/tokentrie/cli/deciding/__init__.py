"""Decisions: `tokentrie decide`."""
