//! Calls, walked and written at random.

mod after_calls;
mod closing_tags;
