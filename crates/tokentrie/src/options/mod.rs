//! Options: defined once, with defaults and ranges, read by name from any host.
