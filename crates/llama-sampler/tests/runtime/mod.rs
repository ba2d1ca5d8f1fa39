//! Models, contexts and generations.

mod choose;
mod drafts;
mod forms;
mod heal;
mod life;
mod rules;
mod skip_ahead;
