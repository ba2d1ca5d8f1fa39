//! Chats: the whole loop from messages to a message.
