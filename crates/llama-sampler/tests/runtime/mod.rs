//! Models, contexts and generations.

mod choose;
mod drafts;
mod forms;
mod gathering;
mod heal;
mod life;
mod rules;
mod skip_ahead;
