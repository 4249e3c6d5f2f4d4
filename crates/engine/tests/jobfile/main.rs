//! Job files against the real fio, and against everything else one can write.

mod corpus;
mod fio;
mod properties;
mod targets;
mod values;
