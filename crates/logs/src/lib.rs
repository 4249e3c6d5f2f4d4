//! fio's logs of latencies and rates: their statistics ([`latlog`]) and plots ([`graphs`]).

#![forbid(unsafe_code)]

pub mod graphs;
pub mod latlog;
