//! Models, contexts and generations.

mod choose;
mod forms;
mod heal;
mod life;
mod rules;
mod skip_ahead;
