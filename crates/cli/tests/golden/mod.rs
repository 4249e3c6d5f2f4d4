//! What every kind of run writes, byte for byte: screens, documents, files and the
//! events of its record, under the simulated device, a fio that is played
//! (`played-fio.sh`) or a loop device; and records of version 1 of the format
//! (`records/`, made by `records/make.sh`), which are read and gone on with for good.
//!
//! What differs from machine to machine is taken out by [`normal`] alone. Whoever
//! changes an output on purpose looks at the difference and takes it over with
//! `INSTA_UPDATE=always cargo test -p fathom-cli --test suite golden`.

mod campaigns;
#[cfg(feature = "kube")]
mod clusters;
mod devices;
mod jobs;
mod normal;
mod play;
mod records;
mod steady;
