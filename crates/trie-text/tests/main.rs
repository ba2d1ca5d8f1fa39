//! Texts, vocabularies and forms. One binary, because each is linked anew.

mod form_walk;
mod forms;
mod texts;
mod tokenize_all;
mod tokenizer;
mod values;
mod vocab;
