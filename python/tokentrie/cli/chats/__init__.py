"""Chats and their templates: `tokentrie chat`, `tokentrie template`."""
