"""The commands `tokentrie decide` and `tokentrie calibrate`."""
