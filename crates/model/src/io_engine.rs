//! fio's I/O engines (`ioengine=`), in one table.

/// How an engine treats storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its files, one I/O after the other.
    Sync,
    /// Its files, with a queue.
    Async,
    /// No storage.
    None,
    /// Storage that is not a path on this machine.
    Remote,
    /// Changes its files whatever the direction is.
    Always,
}

/// An engine.
#[derive(Debug, Clone, Copy)]
pub struct IoEngineRow {
    /// As job files have it.
    pub name: &'static str,
    /// What it does with storage.
    pub access: Access,
    /// Whether it reads and writes files through the kernel, so that without direct=1 the
    /// page cache takes part.
    pub has_page_cache: bool,
    /// Whether every fio for Linux of the last years is built with it.
    pub is_usual: bool,
}

impl IoEngineRow {
    const fn new(name: &'static str, access: Access) -> Self {
        Self {
            name,
            access,
            has_page_cache: false,
            is_usual: false,
        }
    }

    const fn through_page_cache(self) -> Self {
        Self {
            has_page_cache: true,
            ..self
        }
    }

    const fn usual(self) -> Self {
        Self {
            is_usual: true,
            ..self
        }
    }

    /// Whether it does one I/O at a time, whatever `iodepth` says.
    pub fn is_one_at_a_time(&self) -> bool {
        self.access == Access::Sync
    }
}

/// The engine of a job that names none, on Linux.
pub const DEFAULT_IO_ENGINE: &str = "psync";

/// Every engine of fio 3.33 and of later versions (its HOWTO, "I/O engine").
pub const IO_ENGINES: &[IoEngineRow] = &[
    IoEngineRow::new("sync", Access::Sync)
        .through_page_cache()
        .usual(),
    IoEngineRow::new("psync", Access::Sync)
        .through_page_cache()
        .usual(),
    IoEngineRow::new("vsync", Access::Sync)
        .through_page_cache()
        .usual(),
    IoEngineRow::new("pvsync", Access::Sync)
        .through_page_cache()
        .usual(),
    IoEngineRow::new("pvsync2", Access::Sync)
        .through_page_cache()
        .usual(),
    IoEngineRow::new("mmap", Access::Sync)
        .through_page_cache()
        .usual(),
    IoEngineRow::new("splice", Access::Sync).through_page_cache(),
    IoEngineRow::new("libaio", Access::Async)
        .through_page_cache()
        .usual(),
    IoEngineRow::new("io_uring", Access::Async)
        .through_page_cache()
        .usual(),
    IoEngineRow::new("io_uring_cmd", Access::Async),
    IoEngineRow::new("posixaio", Access::Async)
        .through_page_cache()
        .usual(),
    IoEngineRow::new("solarisaio", Access::Async).through_page_cache(),
    IoEngineRow::new("windowsaio", Access::Async),
    IoEngineRow::new("guasi", Access::Async),
    IoEngineRow::new("syslet-rw", Access::Async),
    IoEngineRow::new("sg", Access::Async),
    IoEngineRow::new("libblkio", Access::Async),
    IoEngineRow::new("xnvme", Access::Async),
    IoEngineRow::new("libzbc", Access::Sync),
    IoEngineRow::new("libcufile", Access::Sync),
    IoEngineRow::new("libpmem", Access::Sync),
    IoEngineRow::new("dev-dax", Access::Sync),
    IoEngineRow::new("pmemblk", Access::Sync),
    IoEngineRow::new("mtd", Access::Sync),
    IoEngineRow::new("null", Access::None).usual(),
    IoEngineRow::new("cpuio", Access::None),
    IoEngineRow::new("net", Access::None),
    IoEngineRow::new("netsplice", Access::None),
    IoEngineRow::new("rdma", Access::None),
    IoEngineRow::new("librpma_apm_client", Access::None),
    IoEngineRow::new("librpma_apm_server", Access::None),
    IoEngineRow::new("librpma_gpspm_client", Access::None),
    IoEngineRow::new("librpma_gpspm_server", Access::None),
    IoEngineRow::new("rbd", Access::Remote),
    IoEngineRow::new("rados", Access::Remote),
    IoEngineRow::new("nbd", Access::Remote),
    IoEngineRow::new("nfs", Access::Remote),
    IoEngineRow::new("http", Access::Remote),
    IoEngineRow::new("gfapi", Access::Remote),
    IoEngineRow::new("gfapi_async", Access::Remote),
    IoEngineRow::new("libhdfs", Access::Remote),
    IoEngineRow::new("libiscsi", Access::Remote),
    IoEngineRow::new("dfs", Access::Remote),
    IoEngineRow::new("ime_psync", Access::Remote),
    IoEngineRow::new("ime_psyncv", Access::Remote),
    IoEngineRow::new("ime_aio", Access::Remote),
    IoEngineRow::new("exec", Access::Always),
    IoEngineRow::new("e4defrag", Access::Always),
    IoEngineRow::new("falloc", Access::Always).through_page_cache(),
    IoEngineRow::new("ftruncate", Access::Always),
    IoEngineRow::new("filecreate", Access::Always),
    IoEngineRow::new("filedelete", Access::Always),
    IoEngineRow::new("filestat", Access::Always),
    IoEngineRow::new("dircreate", Access::Always),
    IoEngineRow::new("dirdelete", Access::Always),
    IoEngineRow::new("dirstat", Access::Always),
];

/// The engine of this name; `None` when it is not known.
pub fn io_engine(name: &str) -> Option<&'static IoEngineRow> {
    IO_ENGINES.iter().find(|row| row.name == name)
}
