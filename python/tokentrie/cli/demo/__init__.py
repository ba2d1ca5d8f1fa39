"""`tokentrie demo`."""
