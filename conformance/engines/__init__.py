"""One small program an engine: each speaks the protocol of README.md over its standard input and output."""
