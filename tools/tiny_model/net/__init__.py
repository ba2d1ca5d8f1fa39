"""Parts of training: the model, how it starts, and rows of tokens for it."""
