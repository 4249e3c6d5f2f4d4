//! What jobs touch, and whether they write there.

use std::path::Path;

use fathom_jobfile::{JobFile, Replay, spec};
use fathom_model::JobSpec;
use fathom_model::value::Amount;

use crate::jobfile::fio;

fn job(text: &str) -> JobSpec {
    let file = JobFile::parse(&format!("[job]\n{text}\n"), Path::new("x.fio"), &|_| None).file;
    file.jobs().remove(0)
}

fn paths(text: &str) -> Vec<String> {
    let targets = fathom_jobfile::targets(&job(text));
    targets
        .iter()
        .map(|target| {
            let mark = if target.writes { " w" } else { "" };
            format!("{}{mark}", target.path.display())
        })
        .collect()
}

#[test]
fn files_are_found_wherever_they_are_named() {
    assert_eq!(
        paths("filename=/dev/sda:/dev/sdb"),
        ["/dev/sda", "/dev/sdb"]
    );
    assert_eq!(paths(r"filename=a\:b: c :"), ["a:b", "c"]);
    assert_eq!(paths("filename=a\nfilename=b\nrw=write"), ["a w", "b w"]);
    assert_eq!(paths("directory=/x:/y\nfilename=a"), ["/x/a", "/y/a"]);
    assert_eq!(paths("directory=/x\nfilename=/dev/sda"), ["/x/dev/sda"]);
    assert_eq!(paths("size=1m"), ["."]);
    assert_eq!(paths("directory=/x\nnrfiles=4\nnumjobs=3\nrw=rw"), ["/x w"]);
    assert_eq!(paths("opendir=/x"), ["/x"]);
    assert_eq!(paths("filename=-"), [""; 0]);
    assert_eq!(
        paths("filename_format=/dev/loop$filenum\nnrfiles=2\nrw=trim"),
        ["/dev/loop0 w", "/dev/loop1 w"]
    );
    assert_eq!(
        paths("read_iolog=x\nreplay_redirect=/dev/sda"),
        ["/dev/sda w"]
    );
    assert_eq!(
        paths("filename=a\nmem=mmapshared:/dev/sdb"),
        ["a", "/dev/sdb w"]
    );
    assert_eq!(paths("filename=a\nwrite_iolog=log"), ["a", "log w"]);
    assert_eq!(
        paths("ioengine=pmemblk\nfilename=/p,4096,100\nrw=write"),
        ["/p w"]
    );
    assert_eq!(
        paths("profile=act\ndevice-names=/dev/sda,/dev/sdb"),
        [". w", "/dev/sda w", "/dev/sdb w"]
    );
    for engine in ["null", "cpuio", "net", "rbd", "nbd", "http"] {
        let text = format!("ioengine={engine}\nfilename=/dev/sda\nrw=write");
        assert_eq!(paths(&text), [""; 0], "{engine}");
    }
}

#[test]
fn only_what_is_known_to_read_is_no_write() {
    let writes = |text: &str| fathom_jobfile::is_write(&job(text));
    for text in [
        "",
        "rw=read",
        "rw=randread",
        "readwrite=randread:8",
        "rw=write\nrw=read",
        "verify=crc32c",
        "unlink=0",
        "ioengine=null\nrw=write",
        "ioengine=libaio",
        "do_verify=1\nverify=md5",
    ] {
        assert!(!writes(text), "{text}");
    }
    for text in [
        "rw=write",
        "rw=randwrite",
        "rw=rw\nrwmixread=100",
        "rw=readwrite",
        "rw=randrw",
        "rw=trim",
        "rw=randtrim",
        "rw=trimwrite",
        "rw=randtrimwrite",
        "rw=",
        "rw",
        "rw=new_kind",
        "rw=read,write",
        "readwrite=write",
        "rw=write\nverify_only",
        "unlink=1",
        "unlink_each_loop=1",
        "trim_percentage=5",
        "read_iolog=x",
        "profile=act",
        "ioengine=filedelete",
        "ioengine=falloc",
        "ioengine=unheard_of",
        "ioengine=external:/x.so",
        "ioengine=exec",
        "ioengine=rbd\nrw=write",
        "rw=read\nreadwrite=randrw",
    ] {
        assert!(writes(text), "{text}");
    }
}

/// A name with folders in it is one of a file all the same.
#[test]
fn a_verify_state_is_judged_by_the_name_it_will_have() {
    let mut job = job("filename=x\nrw=write\nverify=md5");
    job.name = "a/b".to_owned();
    let targets = fathom_jobfile::targets(&job);
    let state = Path::new("local-a.b-0-verify.state");
    assert!(targets.iter().any(|target| target.path == state));
}

#[test]
fn a_replayed_log_names_its_targets_itself() {
    let replay = |text: &str, log: &'static [u8]| {
        fathom_jobfile::replay(&job(text), &|_| Ok(Box::new(log))).unwrap()
    };
    let log = b"fio version 2 iolog\n/dev/sda add\n/tmp/x add\n/dev/sda open\n\
        /dev/sda read 0 4096\n/tmp/x trim 0 4096\n/dev/sda close\n";
    let Replay::Files(files) = replay("read_iolog=log", log) else {
        panic!();
    };
    let files: Vec<_> = files
        .iter()
        .map(|f| (f.path.to_str().unwrap(), f.writes))
        .collect();
    assert_eq!(files, [("/dev/sda", false), ("/tmp/x", true)]);

    let timed = b"fio version 3 iolog\n0 /dev/sdb add\n5 /dev/sdb write 0 4096\n";
    let Replay::Files(files) = replay("read_iolog=log", timed) else {
        panic!();
    };
    assert!(files[0].writes && files[0].path == Path::new("/dev/sdb"));

    // A block trace that ends too soon, an unknown word, a line without end.
    let odd: [(&[u8], &str); 5] = [
        (b"\x07tae\0\0", "log: record 1: the trace ends within it"),
        (b"", "log:1:1: is neither"),
        (b"fio version 2 iolog\nx zap 1 2\n", "log:2:3: 'zap'"),
        (
            b"fio version 2 iolog\nx write 1 2\n",
            "log:2:1: 'x' was not added",
        ),
        (&[b'x'; 10_000], "log:1:1: is longer than 4094 bytes"),
    ];
    for (log, what) in odd {
        let Replay::Unknown(why) = replay("read_iolog=log", log) else {
            panic!("{what}");
        };
        assert!(why.starts_with(what), "{why}");
    }
    assert!(matches!(replay("read_iolog=-", b""), Replay::Unknown(_)));
    // What is only read is deleted by a job that is to delete its files.
    let unlinked = b"fio version 2 iolog\nx add\nx open\nx read 0 1\nx close\n";
    let Replay::Files(files) = replay("read_iolog=log\nunlink=1", unlinked) else {
        panic!();
    };
    assert!(files[0].writes);
    assert_eq!(
        replay("read_iolog=x\nreplay_redirect=/dev/sda", b""),
        Replay::None
    );
    assert_eq!(replay("rw=write", b""), Replay::None);
}

/// The log that fio itself writes is understood.
#[test]
fn a_log_of_fio_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "--output=/dev/null",
        "--name=a",
        "--thread",
        "--size=64k",
        "--rw=randrw",
        "--filename=data",
        "--write_iolog=log",
    ];
    if fio::run("a_log_of_fio_is_understood", &args, folder.path()).is_none() {
        return;
    }
    let open = |path: &Path| -> std::io::Result<Box<dyn std::io::Read + Send>> {
        Ok(Box::new(std::fs::File::open(folder.path().join(path))?))
    };
    let Replay::Files(files) = fathom_jobfile::replay(&job("read_iolog=log"), &open).unwrap()
    else {
        panic!();
    };
    assert_eq!(files.len(), 1);
    assert!(files[0].writes && files[0].path == Path::new("data"));
    assert!(fathom_jobfile::replay(&job("read_iolog=none"), &open).is_err());
}

#[test]
fn reading_jobs_may_create_files() {
    assert!(fathom_jobfile::targets(&job("filename=a"))[0].creates);
    assert!(!fathom_jobfile::targets(&job("filename=a\nallow_file_create=0"))[0].creates);
}

/// fio's own files, for jobs whose names are generated or put into folders.
#[test]
fn fio_makes_its_files_where_the_targets_are() {
    let texts = [
        "size=4k",
        "size=4k\nnrfiles=2\nnumjobs=2",
        "size=4k\ndirectory=d1:d2\nnumjobs=2",
        "size=4k\ndirectory=d1\nfilename=x:y",
        "size=4k\nfilename=x\nfilename=y",
        "size=4k\nfilename=a\\:b",
        "size=4k\nfilename=/abs\ndirectory=d1",
        "size=8k\nfilename_format=f.$jobname.$filenum\nnrfiles=2",
        "size=4k\nioengine=null\nfilename=n",
    ];
    for text in texts {
        let folder = tempfile::tempdir().unwrap();
        for name in ["d1", "d2"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let args: Vec<String> = fathom_jobfile::cmdline(&[job(text)]);
        let mut all = vec!["--output=/dev/null", "--create_only=1", "--thread"];
        all.extend(args.iter().map(String::as_str));
        let test = "fio_makes_its_files_where_the_targets_are";
        if fio::run(test, &all, folder.path()).is_none() {
            return;
        }
        let targets: Vec<_> = fathom_jobfile::targets(&job(text))
            .into_iter()
            .map(|t| folder.path().join(t.path))
            .collect();
        let made = files(folder.path());
        for file in &made {
            let covered = targets
                .iter()
                .any(|target| file == target || file.parent() == Some(target));
            assert!(
                covered,
                "{text}: {} is not one of {targets:?}",
                file.display()
            );
        }
        assert_eq!(made.is_empty(), targets.is_empty(), "{text}: {made:?}");
    }
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn typed_options_know_aliases_and_units() {
    let job = job(
        "blocksize=4k,8k\nnumjobs=2k\niodepth=32\ntimeout=2m\nramp_time=500ms\ntime_based\nsize=10%\nreadwrite=randrw\nioengine=libaio",
    );
    assert_eq!(spec::bs(&job), Some([4096, 8192, 8192]));
    assert_eq!(spec::numjobs(&job), 2048);
    assert_eq!(spec::iodepth(&job), 32);
    assert_eq!(spec::runtime(&job).unwrap().as_secs(), 120);
    assert_eq!(spec::ramp_time(&job).unwrap().as_millis(), 500);
    assert!(spec::time_based(&job));
    assert_eq!(spec::size(&job), Some(Amount::Percent(10)));
    let rw = spec::rw(&job).unwrap();
    assert!(rw.reads && rw.writes && rw.random && !rw.trims);
    assert_eq!(spec::engine(&job), "libaio");
}

#[test]
fn set_replaces_every_name_of_an_option() {
    let text = "[global]\nblocksize=4k\nfilename=g\n[a]\nbs=8k\nfilename=a\n[b]\n; kept\n";
    let mut file = JobFile::parse(text, Path::new("x.fio"), &|_| None).file;
    file.set("bs", Some("1m"));
    file.set("filename", Some("/new"));
    file.set("time_based", None);
    let set = "bs=1m\nfilename=/new\ntime_based\n";
    assert_eq!(
        file.render(),
        format!("[global]\n[a]\n{set}[b]\n; kept\n{set}")
    );
}
