"""Training data: documents that are drawn from a grammar, and what is held out of it."""
