//! How constraints and rules behind a pointer are shown.

/// What is behind a pointer shows itself; but for WebAssembly, where nobody looks, and modules would have the code of
/// each kind and of all that is in it.
#[cfg(not(target_family = "wasm"))]
pub use std::fmt::Debug as Shown;

/// As elsewhere: nothing is shown here.
#[cfg(target_family = "wasm")]
pub trait Shown {}

#[cfg(target_family = "wasm")]
impl<T: ?Sized> Shown for T {}

/// Shows these by their names alone where they do not show themselves.
#[macro_export]
#[doc(hidden)]
macro_rules! shown_by_name {
    ($($kind:ident $(<$state:ident>)?),*) => {
        $(#[cfg(target_family = "wasm")]
        impl $(<$state>)? std::fmt::Debug for dyn $kind $(<$state>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($kind))
            }
        })*
    };
}
