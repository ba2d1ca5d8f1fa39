"""The command `tokentrie serve`."""
