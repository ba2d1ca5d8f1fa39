//! Formats of chats: read from templates, held, and read back. One binary, because each is linked anew.

mod analyses;
mod before_content;
mod calls;
mod cases;
mod checked;
mod dialects;
mod everybody;
mod held;
mod hostile_analyses;
mod linear;
mod mutated;
mod names;
mod noise;
mod response_template;
mod spans;
mod spelling;
mod streaming;
mod support;
mod unseen;
mod warnings;
