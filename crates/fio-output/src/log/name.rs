//! What the name says that fio gave a log.

use std::path::Path;

use fathom_model::LogKind;

/// A name of fio: `PREFIX_KIND[.JOB].log[.HOST][.gz]` (`init.c`, `gen_log_name`;
/// `client.c` adds the host). fio-tests' `PREFIX_clat_hist` logs are the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogName {
    /// What the user named it.
    pub prefix: String,
    /// What it holds.
    pub kind: LogKind,
    /// The number of the job, from 1; none with `per_job_logs=0`.
    pub job: Option<u32>,
    /// The host of the job, in client mode.
    pub host: Option<String>,
}

impl LogName {
    /// Of a file; `None` when fio did not name it.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let name = name.strip_suffix(".gz").unwrap_or(name);
        let (stem, host) = match name.strip_suffix(".log") {
            Some(stem) => (stem, None),
            // A prefix may have ".log" in it: the last one is fio's.
            None => {
                let (stem, host) = name.rsplit_once(".log.")?;
                // What `fathom lat --save-priolat` writes beside a log.
                if host.starts_with("0x") && host.ends_with(".lat") {
                    return None;
                }
                (stem, Some(host.to_owned()))
            }
        };
        let (stem, job) = match stem.rsplit_once('.') {
            Some((before, number)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                match number.parse() {
                    Ok(job) => (before, Some(job)),
                    Err(_) => (stem, None),
                }
            }
            _ => (stem, None),
        };
        // "clat_hist" before what it ends with, were there such a word.
        let (prefix, kind) = LogKind::ALL.into_iter().rev().find_map(|kind| {
            let prefix = stem.strip_suffix(kind.word())?.strip_suffix('_')?;
            Some((prefix, kind))
        })?;
        let prefix = prefix.to_owned();
        Some(Self {
            prefix,
            kind,
            job,
            host,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fio_are_taken_apart() {
        let of =
            |name: &str| LogName::of(Path::new(name)).map(|n| (n.prefix, n.kind, n.job, n.host));
        let some = |prefix: &str, kind, job, host: Option<&str>| {
            Some((prefix.to_owned(), kind, job, host.map(str::to_owned)))
        };
        assert_eq!(of("a_bw.log"), some("a", LogKind::Bandwidth, None, None));
        assert_eq!(
            of("x/a_iops.12.log.host-1.example"),
            some("a", LogKind::Iops, Some(12), Some("host-1.example"))
        );
        assert_eq!(
            of("a_clat_hist.1.log.gz"),
            some("a", LogKind::ClatHistograms, Some(1), None)
        );
        assert_eq!(
            of("randread.log_lat.log"),
            some("randread.log", LogKind::Lat, None, None)
        );
        assert_eq!(of("bw_lat.3.log"), some("bw", LogKind::Lat, Some(3), None));
        assert_eq!(of("a_slat.1.log"), some("a", LogKind::Slat, Some(1), None));
        assert_eq!(of("_clat.1.log"), some("", LogKind::Clat, Some(1), None));
        for other in [
            "a.log",
            "lat.log",
            "a_lat.txt",
            "a_lat",
            "a_foo.1.log",
            "a_lat.log.0x4008.lat",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
