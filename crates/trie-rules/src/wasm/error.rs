//! Errors of WebAssembly modules.

use trie_core::work::LimitExceeded;

/// Error of a module that is not a rule, or that failed when it was called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WasmError {
    /// It is larger than it may be.
    #[error(
        "the module has {bytes} bytes: it may have {most}. Leave out debug information, or raise the limit (bytes)"
    )]
    TooLarge {
        /// Size of the module in bytes.
        bytes: usize,
        /// Limit on the size.
        most: usize,
    },
    /// It is not a valid module.
    #[error("no module of WebAssembly that is read here: {reason}")]
    Invalid {
        /// Description of the defect.
        reason: String,
    },
    /// The module imports something.
    #[error("the module imports {name}: a rule imports nothing")]
    Import {
        /// Name of the import, as `module.name`.
        name: String,
    },
    /// A function is missing, or is another than it must be.
    #[error("the module must export {name} as a function {signature}")]
    Export {
        /// Name of the export.
        name: &'static str,
        /// Expected type of it.
        signature: &'static str,
    },
    /// The module cannot be instantiated, for example because it needs more memory than allowed.
    #[error("the module cannot be begun: {reason}")]
    Instance {
        /// Description of the error.
        reason: String,
    },
    /// The start state is below 0, so no text is legal.
    #[error("start gave {state}: states are at least 0")]
    Start {
        /// State that was returned.
        state: i64,
    },
    /// A call that trapped.
    #[error("{function}{arguments} trapped: {reason}")]
    Trap {
        /// Name of the function.
        function: &'static str,
        /// Arguments of the call.
        arguments: String,
        /// Why, as WebAssembly says it.
        reason: String,
    },
    /// One call took too long.
    #[error("{function}{arguments} takes more than {fuel} units of fuel: does it end? Else raise the limit (steps)")]
    Fuel {
        /// Name of the function.
        function: &'static str,
        /// Arguments of the call.
        arguments: String,
        /// Fuel limit of a call.
        fuel: u64,
    },
    /// All calls together took too long.
    #[error(
        "the calls for one answer take more than {fuel} units of fuel: do less in step, or raise the limit (steps)"
    )]
    Slow {
        /// Fuel limit of the calls.
        fuel: u64,
    },
    /// It takes more work than it may.
    #[error(transparent)]
    Over(#[from] LimitExceeded),
}

trie_core::error_kind!(WasmError, Rule);
