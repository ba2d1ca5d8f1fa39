//! Filters, tests, functions and methods: those of Jinja2, Python's types, and what transformers adds.

pub(crate) mod args;
pub(crate) mod filters;
mod filters_of_lists;
mod filters_of_text;
pub(crate) mod functions;
pub(crate) mod methods;
mod methods_of_text;
pub(crate) mod tests;
