//! The template engine. One binary, because each is linked anew.

mod hostile;
mod shapes;
mod vectors;
