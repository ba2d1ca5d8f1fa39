//! A safe runtime on llama.cpp: load, tokenise, decode, generate inside a span. Data flows from `gguf` to `generate`.

mod ahead;
mod backend;
mod chain;
mod choose;
mod cuts;
mod error;
mod fill;
mod form;
mod generate;
mod gguf;
mod grammar;
mod guard;
mod model;
mod preconditions;
mod run;
mod scores;
mod session;
mod slot_set;
mod template;
mod texts;
mod threads;
mod tokenize_all;
mod tree;
mod vocab;

pub use backend::supports_graphics_cards;
pub use choose::{Choice, ChooseOptions, ChooseStats};
pub use error::RuntimeError;
pub use fill::{Field, FillOptions, Filled};
pub use form::{Form, FormError, Part, SlotValues};
pub use generate::{Finish, GenerateOptions, GenerateStats, Generated, Step, Watch};
pub use grammar::Engine;
pub use model::{Model, ModelOptions, Progress};
pub use session::{Session, SessionOptions};
pub use texts::{Spelling, TextError, TextReport, TextTrie, Texts};
pub use threads::default_threads;
pub use vocab::Vocab;
