use std::collections::BTreeSet;

use fathom_model::FailureKind;

use super::*;

#[test]
fn a_refused_server_is_named_and_nothing_is_begun() {
    let bench = Bench::new();
    let server = Server::local();
    let gone = nobodys_address();
    let job = null_job(&bench, 1);
    let (code, doc) = bench.json(&["job", "run", &job, "--client", &server.address, &gone]);
    assert_eq!((code, &doc["status"]), (1, &"failed".into()), "{doc}");
    let told = failures(&doc);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].0.as_str(), &told[0].1), ("no_server", &gone));
    assert!(doc["jobs"].as_array().unwrap().is_empty(), "{doc}");
    let hosts = doc["hosts"].as_array().unwrap();
    assert!(hosts[0]["lost"].is_null() && hosts[1]["lost"].is_string());
}

#[test]
fn with_fewer_wanted_the_run_goes_on_without_a_server() {
    let bench = Bench::new();
    let servers = [Server::local(), Server::local()];
    let job = null_job(&bench, 1);
    let gone = nobodys_address();
    let run = |least: &str| {
        let (a, b) = (&servers[0].address, &servers[1].address);
        bench.json(&[
            "job",
            "run",
            &job,
            "--min-clients",
            least,
            "--client",
            a,
            b,
            &gone,
        ])
    };
    let (code, doc) = run("2");
    assert_eq!((code, &doc["status"]), (0, &"complete".into()), "{doc}");
    assert_eq!(failures(&doc)[0].1, gone);
    assert_eq!(total(&doc)["clients"], 2);
    let doubts = total(&doc)["read"]["verdict"].to_string();
    assert!(doubts.contains("hosts_missing"), "{doubts}");
    let (code, _) = run("3");
    assert_eq!(code, 1);
    let none = bench.run(&["job", "run", &job, "--min-clients", "4", "--client", &gone]);
    assert_eq!(none.status.code(), Some(2));
}

/// Starts a run of jobs that last so long, and waits until all servers have told
/// how far they are.
fn running(bench: &Bench, servers: &[Server], seconds: u32, args: &[&str]) -> Child {
    let job = null_job(bench, seconds);
    let addresses: Vec<&str> = servers.iter().map(|s| s.address.as_str()).collect();
    let all = [
        &["job", "run", &job, "--json", "-q", "--interval", "200ms"],
        args,
        &["--client"],
        &addresses,
    ];
    let child = bench.command(&all.concat()).spawn().unwrap();
    await_that("all servers have samples", || {
        let log = bench.records().pop().map(|run| run.join("events.jsonl"));
        let log = log.and_then(|log| fs::read_to_string(log).ok());
        let log = log.unwrap_or_default();
        let samples = log.lines().flat_map(serde_json::from_str::<Value>);
        let samples = samples.filter(|line| line["event"] == "sample");
        let jobs: BTreeSet<u64> = samples.flat_map(|line| line["job"].as_u64()).collect();
        jobs.len() == servers.len()
    });
    child
}

/// Kills what serves a connection, and its jobs, which would hold it until they end.
fn kill_session(server: &Server) {
    let (session, jobs) = server.session();
    [&[session], &jobs[..]]
        .concat()
        .iter()
        .for_each(|&pid| signal(pid, "KILL"));
}

fn document(child: Child) -> (Option<i32>, Value) {
    let output = child.wait_with_output().unwrap();
    let doc = serde_json::from_slice(&output.stdout);
    let doc = doc.unwrap_or_else(|e| panic!("{e}: {output:?}"));
    (output.status.code(), doc)
}

#[test]
fn a_server_killed_in_mid_run_is_named_and_ends_the_run() {
    let bench = Bench::new();
    let servers = [Server::local(), Server::local()];
    let run = running(&bench, &servers, 12, &[]);
    kill_session(&servers[1]);
    let (code, doc) = document(run);
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    let told = failures(&doc);
    assert_eq!(
        (told[0].0.as_str(), &told[0].1),
        ("lost", &servers[1].address)
    );
    advises(&bench, FailureKind::Lost.advice());
    // What it did until then is there, and not in the sum.
    let jobs = doc["jobs"].as_array().unwrap();
    let doubts = |job: &Value| job["read"]["verdict"].to_string();
    assert!(
        jobs.iter().any(|job| doubts(job).contains("from_samples")),
        "{doc}"
    );
    assert_eq!(total(&doc)["clients"], 1);
    assert!(doubts(total(&doc)).contains("hosts_missing"));
}

#[test]
fn a_server_killed_in_mid_run_may_be_done_without() {
    let bench = Bench::new();
    let servers = [Server::local(), Server::local()];
    let run = running(&bench, &servers, 12, &["--min-clients", "1"]);
    kill_session(&servers[1]);
    let (code, doc) = document(run);
    assert_eq!(
        (code, &doc["status"]),
        (Some(0), &"complete".into()),
        "{doc}"
    );
    assert_eq!(failures(&doc)[0].1, servers[1].address);
    let ms = total(&doc)["read"]["runtime_ms"].as_u64().unwrap();
    assert!(ms >= 12_000, "the other one ran to its end: {ms} ms");
}

#[test]
fn a_hung_job_does_not_hang_the_run() {
    let bench = Bench::new();
    let servers = [Server::local(), Server::local()];
    let run = running(&bench, &servers, 6, &["--timeout", "10"]);
    let (_, jobs) = servers[1].session();
    jobs.iter().for_each(|&job| signal(job, "STOP"));
    let (code, doc) = document(run);
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    let hung = failures(&doc).into_iter().find(|(kind, ..)| kind == "hung");
    assert_eq!(hung.unwrap().1, servers[1].address, "{doc}");
    advises(
        &bench,
        "look at the kernel log of that host: its device may not answer",
    );
    // The figures of the other are those that it reported itself.
    let clat = total(&doc)["read"]["clat"]["n"].as_u64();
    assert!(clat.is_some_and(|n| n > 0), "{doc}");
}

#[test]
fn a_killed_job_and_a_refused_option_are_told_with_their_server() {
    let bench = Bench::new();
    let servers = [Server::local(), Server::local()];
    let run = running(&bench, &servers, 6, &[]);
    let (_, jobs) = servers[0].session();
    signal(*jobs.last().unwrap(), "KILL");
    let (code, doc) = document(run);
    assert_eq!(code, Some(1), "{doc}");
    let told = failures(&doc);
    let killed = told.iter().find(|(kind, ..)| kind == "job_killed");
    assert!(killed.unwrap().1.contains(&servers[0].address), "{told:?}");
    let bad = bench.file("bad.fio", "[a]\nioengine=null\nsize=1m\nnonsense=1\n");
    let (a, b) = (&servers[0].address, &servers[1].address);
    let (code, doc) = bench.json(&["job", "run", bad.to_str().unwrap(), "--client", a, b]);
    assert_eq!(code, 1);
    let told = failures(&doc);
    assert!(
        told[0].0 == "bad_option" && told[0].2.contains("nonsense"),
        "{told:?}"
    );
}

#[test]
fn an_interrupt_keeps_what_the_servers_measured() {
    let bench = Bench::new();
    let servers = [Server::local(), Server::local()];
    let run = running(&bench, &servers, 600, &[]);
    signal(run.id(), "INT");
    let (code, doc) = document(run);
    assert_eq!(
        (code, &doc["status"]),
        (Some(130), &"interrupted".into()),
        "{doc}"
    );
    assert!(total(&doc)["read"]["clat"]["n"].as_u64() > Some(0), "{doc}");
    let idle = |server: &Server| children(server.fio()).iter().all(|&c| below(c).is_empty());
    await_that("the servers have ended their jobs", || {
        servers.iter().all(idle)
    });
}

#[test]
fn a_killed_fathom_leaves_no_job_on_a_server() {
    let bench = Bench::new();
    let servers = [Server::local()];
    let mut run = running(&bench, &servers, 600, &[]);
    let (_, jobs) = servers[0].session();
    signal(run.id(), "KILL");
    run.wait().unwrap();
    for job in jobs {
        let is_gone = || !Path::new(&format!("/proc/{job}/exe")).exists();
        await_that("the jobs end", is_gone);
    }
}

/// Accepts one connection and answers with `answer`.
fn stranger(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("127.0.0.1,{}", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        let mut greeting = [0; 24];
        let _ = stream.read_exact(&mut greeting);
        // Another version answers with the same words and another number.
        let mut head = answer;
        if head.is_empty() {
            greeting[0] ^= 0x18;
            head = framed(greeting);
        }
        let _ = stream.write_all(&head);
        // Until the other side has enough of it.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    address
}

/// The head of a frame with its own checksum, and no payload.
fn framed(mut head: [u8; 24]) -> Vec<u8> {
    head[16..24].fill(0);
    checked(head)
}

/// The head of a frame with its own checksum.
pub(super) fn checked(mut head: [u8; 24]) -> Vec<u8> {
    let crc = crc16(&head[..20]);
    head[20..22].copy_from_slice(&crc.to_le_bytes());
    head.to_vec()
}

/// CRC-16/ARC.
pub(super) fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0u16, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte), |crc, _| match crc & 1 {
            0 => crc >> 1,
            _ => (crc >> 1) ^ 0xa001,
        })
    })
}

#[test]
fn what_is_no_fio_server_or_another_version_is_named() {
    let bench = Bench::new();
    let job = null_job(&bench, 1);
    let http = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    let name_a_server = "name the address of a fio server ('fathom serve' makes one)";
    let same_version = FailureKind::Mismatch.advice();
    for (address, words, advice) in [
        (stranger(http), "no fio server", name_a_server),
        (stranger(Vec::new()), "another version", same_version),
    ] {
        let (code, doc) = bench.json(&["job", "run", &job, "--client", &address]);
        let told = failures(&doc);
        assert_eq!((code, told.len()), (1, 1), "{doc}");
        assert_eq!((told[0].0.as_str(), &told[0].1), ("mismatch", &address));
        assert!(told[0].2.contains(words), "{told:?}");
        advises(&bench, advice);
    }
}

#[test]
fn a_server_under_two_names_runs_its_jobs_once() {
    let bench = Bench::new();
    let job = null_job(&bench, 1);
    let server = Server::local();
    let other = server.address.replace("127.0.0.1", "localhost");
    let hosts = ["job", "run", &job, "--client", &server.address, &other];
    let (code, doc) = bench.json(&hosts);
    let told = failures(&doc);
    assert_eq!((code, told.len()), (1, 1), "{doc}");
    assert_eq!((told[0].0.as_str(), &told[0].1), ("same_host", &other));
    assert!(told[0].2.contains(&server.address), "{told:?}");
}

#[test]
fn devices_of_servers_are_written_only_when_confirmed_one_by_one() {
    let bench = Bench::new();
    let job = bench.file("w.fio", "[w]\nfilename=/dev/loop4095\nrw=write\nsize=4k\n");
    let job = job.to_str().unwrap();
    let refused = bench.run(&["job", "run", job, "--client", "127.0.0.1", "127.0.0.2"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{said}");
    for host in ["127.0.0.1", "127.0.0.2"] {
        assert!(
            said.contains(&format!("--destroy {host}:/dev/loop4095")),
            "{said}"
        );
    }
    assert!(!bench.path().join("fathom-runs").exists());
}

#[test]
fn a_newer_fio_on_one_side_is_named_and_on_both_it_runs() {
    let newer = match fathom_testkit::newer_fio() {
        Ok(path) => path.to_str().unwrap().to_owned(),
        Err(reason) => return fathom_testkit::skip("a_newer_fio_on_one_side_is_named", &reason),
    };
    let bench = Bench::new();
    let address = || format!("127.0.0.1,{}", free_port());
    let newer_one = || Server::with(&address(), &["--fio", &newer]);
    let servers = [newer_one(), newer_one(), Server::local()];
    let [a, b, old] = [0, 1, 2].map(|nth| servers[nth].address.as_str());
    let job = null_job(&bench, 2);
    let (code, doc) = bench.json(&["job", "run", &job, "--client", old, a]);
    assert_eq!(code, 1, "{doc}");
    let told = failures(&doc);
    // The older one, which then waits in vain, may be told of first.
    let is_mismatch = |kind: &str, about: &str| (kind, about) == ("mismatch", a);
    assert!(
        told.iter().any(|told| is_mismatch(&told.0, &told.1)),
        "{told:?}"
    );
    assert!(doc["jobs"].as_array().unwrap().is_empty(), "{doc}");
    let interval = ["--interval", "200ms"];
    let args = [
        &["job", "run", &job, "--fio", &newer, "--client", a, b],
        &interval[..],
    ]
    .concat();
    let (code, doc) = bench.json(&args);
    assert_eq!(code, 0, "{doc}");
    assert_eq!(total(&doc)["clients"], 2);
    // The servers told how far they were.
    let samples = samples(&bench);
    for address in [a, b] {
        assert!(samples.contains(&format!("a on {address}")), "{samples}");
    }
}
