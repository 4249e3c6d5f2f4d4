//! What a storage target is, and what it may be used for.
//!
//! Identity ([`identity`]) and the machine's description are read from /proc
//! and /sys; [`safety`] decides whether a target may be written to. Knows only
//! `model`. What Linux alone can tell is absent elsewhere.
