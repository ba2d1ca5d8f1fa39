//! Constraints as data: one JSON form for every host.
