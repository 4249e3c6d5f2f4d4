//! A chart that is to be a file.

use crate::chart::{Chart, Size};

/// A chart and where it belongs.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Path below the folder of graphs, without ending:
    /// `0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30-bww`.
    pub path: String,
    /// What is drawn.
    pub chart: Chart,
    /// How large it is meant to be.
    pub size: Size,
}
