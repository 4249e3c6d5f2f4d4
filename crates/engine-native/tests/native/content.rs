//! What is on the file afterwards: every block written exactly once, with the right content.

use crate::native::{folder, run};

/// The engines that move data.
const ENGINES: [&str; 7] = [
    "psync", "sync", "pvsync2", "libaio", "io_uring", "posixaio", "mmap",
];

/// Whether 512 bytes carry their offset at the start of one of their cache lines
/// (scramble_buffers, where fio has it).
pub(crate) fn holds(bytes: &[u8], offset: u64) -> bool {
    bytes
        .chunks(64)
        .any(|line| line[..8] == offset.to_ne_bytes())
}

/// What a job writes to the file `f` under both engines, native first; `None` without fio.
fn both(options: &str) -> Option<[Vec<u8>; 2]> {
    let text = format!("[j]\nfilename=f\nrw=write\nbs=4k\n{options}\n");
    let (ours, theirs) = (folder(), folder());
    run(ours.path(), &text);
    std::fs::write(theirs.path().join("j.fio"), &text).unwrap();
    let mut fio = std::process::Command::new("fio");
    let output = fio.arg("j.fio").current_dir(theirs.path()).output().ok()?;
    assert!(output.status.success(), "{options}: {output:?}");
    Some([ours, theirs].map(|dir| std::fs::read(dir.path().join("f")).unwrap()))
}

#[test]
fn devices_without_an_end_take_and_give_as_much_as_is_asked_for() {
    let dir = folder();
    let text = "[global]\nbs=4k\nsize=1m\n[w]\nfilename=/dev/null\nrw=write\n[r]\nfilename=/dev/zero\nrw=randread\n";
    let seen = run(dir.path(), text);
    assert_eq!(
        (seen.write(0).total_ios, seen.read(1).total_ios),
        (256, 256)
    );
    let mut seen = crate::native::Seen::default();
    let text = "[r]\nfilename=/dev/zero\nrw=read\nbs=4k\nsize=50%\n";
    let _ = crate::native::try_run(dir.path(), text, &mut seen);
    let message = &seen.failures()[0].message;
    assert!(
        message.contains("the job gives no size in bytes"),
        "{message}"
    );
}

#[test]
fn patterns_are_written_byte_for_byte_as_fio_writes_them() {
    let patterns = [
        "0xdeadbeef",
        "0xfff",
        "\"abcd\"-12",
        "-1024",
        "66",
        "0",
        "0xFF0X1",
        "-100xab\"1\"",
    ];
    for pattern in patterns {
        let Some([ours, theirs]) = both(&format!("size=8k\nbuffer_pattern={pattern}")) else {
            return fathom_testkit::skip(
                "patterns_are_written_byte_for_byte_as_fio_writes_them",
                "fio is not installed",
            );
        };
        assert!(ours == theirs, "{pattern}: {:02x?}", &ours[..16]);
    }
}

/// The share that compression takes away, by zlib over all that was written.
fn compressible(data: &[u8]) -> f64 {
    let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut out, data).unwrap();
    1.0 - out.finish().unwrap().len() as f64 / data.len() as f64
}

#[test]
fn data_compress_as_much_as_fios() {
    for options in [
        "size=1m",
        "size=1m\nrefill_buffers",
        "size=1m\nscramble_buffers=0",
        "size=1m\nbs=64k\niodepth=4\nioengine=libaio",
        "size=1m\nbuffer_compress_percentage=60",
        "size=1m\nbuffer_compress_percentage=60\nbuffer_compress_chunk=4k",
        "size=1m\nbuffer_compress_percentage=25\nbuffer_compress_chunk=1k",
        "size=1m\nbuffer_compress_percentage=50\nbuffer_pattern=0xdeadbeef",
    ] {
        let Some(data) = both(options) else {
            return fathom_testkit::skip("data_compress_as_much_as_fios", "fio is not installed");
        };
        let [ours, theirs] = data.map(|data| compressible(&data));
        assert!(
            (ours - theirs).abs() < 0.02,
            "{options}: {ours}, fio {theirs}"
        );
    }
}

/// How many blocks of 4 KiB are there once, of all.
fn distinct(data: &[u8]) -> f64 {
    let blocks = data.chunks(4096);
    let all = blocks.len() as f64;
    blocks.collect::<std::collections::HashSet<_>>().len() as f64 / all
}

#[test]
fn as_many_blocks_are_duplicates_as_fios() {
    for options in [
        "dedupe_percentage=30",
        "dedupe_percentage=80",
        "dedupe_percentage=100",
        "dedupe_percentage=40\nbuffer_compress_percentage=50",
        "dedupe_percentage=50\ndedupe_mode=working_set",
        "dedupe_percentage=60\ndedupe_mode=working_set\ndedupe_working_set_percentage=20",
        "dedupe_percentage=0",
    ] {
        let Some(data) = both(&format!("size=8m\n{options}")) else {
            let reason = "fio is not installed";
            return fathom_testkit::skip("as_many_blocks_are_duplicates_as_fios", reason);
        };
        let [ours, theirs] = data.map(|data| distinct(&data));
        assert!(
            (ours - theirs).abs() < 0.05,
            "{options}: {ours}, fio {theirs}"
        );
    }
}

#[test]
fn a_randwrite_job_writes_every_block_exactly_once_on_every_engine() {
    for engine in ENGINES {
        let dir = folder();
        // Each 512 bytes carry their offset (scramble_buffers).
        let seen = run(
            dir.path(),
            &format!(
                "[w]\nioengine={engine}\niodepth=16\nrw=randwrite\nbs=4k\nsize=1003520\nfilename=f\n"
            ),
        );
        let write = seen.write(0);
        assert_eq!(
            (write.total_ios, write.io_bytes),
            (245, 1_003_520),
            "{engine}"
        );
        let data = std::fs::read(dir.path().join("f")).unwrap();
        assert_eq!(data.len(), 1_003_520, "{engine}");
        for (sector, bytes) in data.chunks(512).enumerate() {
            assert!(holds(bytes, sector as u64 * 512), "{engine}: {sector}");
        }
    }
}

/// With a thread of the kernel that takes submissions the worker waited for ever:
/// what the thread had taken was not counted.
#[test]
fn a_kernel_thread_that_submits_loses_no_block() {
    for options in [
        "iodepth=8",
        "iodepth=1",
        "iodepth=16\niodepth_batch_complete_min=8",
    ] {
        let dir = folder();
        let seen = run(
            dir.path(),
            &format!(
                "[w]\nioengine=io_uring\nsqthread_poll=1\n{options}\nrw=randwrite\nbs=4k\nsize=1m\nfilename=f\n"
            ),
        );
        assert_eq!(seen.write(0).total_ios, 256, "{options}");
        let data = std::fs::read(dir.path().join("f")).unwrap();
        for (sector, bytes) in data.chunks(512).enumerate() {
            assert!(holds(bytes, sector as u64 * 512), "{options}: {sector}");
        }
    }
}

/// The thread shows late how far it has come: reads that were answered from the cache came
/// back while their places in the queue were still taken, the next were lost, and the
/// worker waited for them for ever.
#[test]
fn a_kernel_thread_that_takes_a_whole_queue_at_once_loses_no_read() {
    let dir = folder();
    std::fs::write(dir.path().join("f"), vec![7u8; 1 << 20]).unwrap();
    let seen = run(
        dir.path(),
        "[r]\nioengine=io_uring\nsqthread_poll=1\niodepth=4\niodepth_batch_submit=4\nrw=randread\nbs=4k\nnorandommap\ninvalidate=0\nsize=1m\nio_size=1g\nnumber_ios=3000\nfilename=f\n",
    );
    assert_eq!(seen.read(0).total_ios, 3000);
}

#[test]
fn blocks_of_several_sizes_cover_the_file_once() {
    for sizes in ["bsrange=4k-16k", "bssplit=4k/50:8k/30:32k/20"] {
        let dir = folder();
        let text = format!(
            "[w]\nioengine=io_uring\niodepth=8\nrw=randwrite\n{sizes}\nsize=2m\nfilename=f\n"
        );
        let seen = run(dir.path(), &text);
        assert_eq!(seen.write(0).io_bytes, 2 << 20, "{sizes}");
        assert!(seen.write(0).total_ios < 512, "{sizes}");
        let data = std::fs::read(dir.path().join("f")).unwrap();
        for (sector, bytes) in data.chunks(512).enumerate() {
            assert!(holds(bytes, sector as u64 * 512), "{sizes}: {sector}");
        }
    }
}

#[test]
fn offset_and_size_bound_what_is_written() {
    let dir = folder();
    std::fs::write(dir.path().join("f"), vec![0u8; 1 << 20]).unwrap();
    run(
        dir.path(),
        "[w]\nioengine=psync\nrw=randwrite\nbs=4k\noffset=256k\nsize=512k\nfilename=f\nbuffer_pattern=0xaa\n",
    );
    let data = std::fs::read(dir.path().join("f")).unwrap();
    let written: Vec<_> = data
        .chunks(4096)
        .map(|block| block.iter().all(|&byte| byte == 0xaa))
        .collect();
    let expected: Vec<_> = (0..256).map(|block| (64..192).contains(&block)).collect();
    assert_eq!(written, expected);
}

#[test]
fn several_files_share_the_size_and_clones_have_files_of_their_own() {
    for service in ["roundrobin", "sequential", "random"] {
        let dir = folder();
        let text = format!(
            "[job]\nrw=write\nbs=4k\nsize=96k\nnrfiles=3\nnumjobs=2\ngroup_reporting\nfile_service_type={service}\n"
        );
        let seen = run(dir.path(), &text);
        assert_eq!(seen.results().jobs.len(), 1);
        assert_eq!(seen.write(0).io_bytes, 2 * 96 * 1024);
        for name in [
            "job.0.0", "job.0.1", "job.0.2", "job.1.0", "job.1.1", "job.1.2",
        ] {
            assert_eq!(
                std::fs::metadata(dir.path().join(name)).unwrap().len(),
                32 * 1024,
                "{service} {name}"
            );
        }
    }
}

#[test]
fn file_names_follow_their_format_and_unlink_removes_them() {
    let dir = folder();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    run(
        dir.path(),
        "[j]\ndirectory=d\nfilename_format=f.$jobnum.$filenum\nfilesize=64k\nsize=64k\nrw=write\ncreate_on_open=1\nend_fsync=1\nnumjobs=2\n",
    );
    assert!(dir.path().join("d/f.0.0").exists() && dir.path().join("d/f.1.0").exists());
    run(
        dir.path(),
        "[j]\ndirectory=d\nfilename=a\\:b:c\nsize=64k\nrw=write\n",
    );
    assert!(dir.path().join("d/a:b").exists() && dir.path().join("d/c").exists());
    run(
        dir.path(),
        "[j]\nfilename=gone\nsize=64k\nrw=write\nunlink=1\n",
    );
    assert!(!dir.path().join("gone").exists());
}
