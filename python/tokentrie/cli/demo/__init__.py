"""The command `tokentrie demo`."""
