"""Chats: `tokentrie chat`."""
