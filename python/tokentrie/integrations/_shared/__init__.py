"""Code that several hosts share; no host is imported here before something needs it."""
