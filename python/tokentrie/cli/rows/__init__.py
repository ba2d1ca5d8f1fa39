"""Rows of files: read, worked on in groups, written, and gone on with where an earlier run stopped."""
