"""The command `tokentrie chat`."""
