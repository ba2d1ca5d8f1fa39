//! Whose turn it is, what ends a call, and the end of the process.
