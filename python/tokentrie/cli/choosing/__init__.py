"""Choices after one prompt or for the rows of a file: `tokentrie choose`."""
