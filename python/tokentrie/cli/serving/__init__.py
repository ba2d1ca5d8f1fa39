"""`tokentrie serve`."""
