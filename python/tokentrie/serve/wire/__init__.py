"""A file for each format: what a request may say, and the form of its answer."""
