//! What is shown: tables, bars and charts, as text, HTML and pictures. It knows no run.
//!
//! - [`grid`] sets every table there is, in a [`style`]; [`chart`] draws, [`graph`] says where to
//! - [`answer`] is what a run was made to answer; [`html`] makes text safe for a page

#![forbid(unsafe_code)]

pub mod answer;
pub mod chart;
pub mod graph;
pub mod grid;
pub mod html;
pub mod style;

pub use style::Style;
