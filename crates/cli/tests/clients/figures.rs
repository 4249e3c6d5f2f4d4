use super::*;

/// Sums of two servers of different kinds of address, against their own lines.
#[test]
fn the_sum_of_servers_is_that_of_their_lines() {
    let bench = Bench::new();
    let socket = format!("sock:{}", bench.path().join("s").display());
    let servers = [Server::local(), Server::new(&socket)];
    let job = null_job(&bench, 2);
    let list = bench.file("hosts", &format!("# two\n{}\n", servers[1].address));
    let (code, doc) = bench.json(&[
        "job",
        "run",
        &job,
        "--client",
        &servers[0].address,
        list.to_str().unwrap(),
    ]);
    assert_eq!((code, &doc["status"]), (0, &"complete".into()), "{doc}");
    let jobs = doc["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 3);
    let sum = |path: &str| -> f64 {
        let each = jobs[..2].iter().map(|job| job.pointer(path).unwrap());
        each.map(|value| value.as_f64().unwrap()).sum()
    };
    let all = total(&doc);
    assert_eq!(all["clients"], 2);
    for path in ["/read/total_ios", "/read/io_bytes", "/read/clat/n"] {
        assert_eq!(
            all.pointer(path).unwrap().as_f64(),
            Some(sum(path)),
            "{path}"
        );
    }
    // In which window rates are added is proven with figures (analysis::hosts).
    assert!(all["read"]["iops"].as_f64() > Some(0.0), "{doc}");
    let percentiles = |job: &Value| job["read"]["clat"]["percentiles_ns"]["99"].as_u64();
    let (a, b) = (percentiles(&jobs[0]), percentiles(&jobs[1]));
    let merged = percentiles(all);
    assert!(
        merged >= a.min(b) && merged <= a.max(b),
        "{a:?} {b:?} {merged:?}"
    );
    let hosts = doc["hosts"].as_array().unwrap();
    assert!(
        hosts
            .iter()
            .all(|host| host["start_ms"].is_f64() && host["lost"].is_null())
    );
    assert!(
        hosts[0]["engine_version"]
            .as_str()
            .unwrap()
            .starts_with("fio-")
    );
    assert_eq!(hosts[1]["name"], bench.path().join("s").to_str().unwrap());
    let notes = doc["notes"].to_string();
    assert!(notes.contains("2 hosts began within"), "{notes}");
}

/// Each server's samples are in the record, and named after it.
#[test]
fn every_server_has_samples() {
    let bench = Bench::new();
    let servers = [Server::local(), Server::local()];
    let job = null_job(&bench, 2);
    let (a, b) = (&servers[0].address, &servers[1].address);
    let run = bench.run(&[
        "job",
        "run",
        &job,
        "-q",
        "--interval",
        "250ms",
        "--client",
        a,
        "--client",
        b,
    ]);
    assert!(run.status.success(), "{run:?}");
    let samples = bench.run(&["show", "--samples=csv"]);
    let samples = String::from_utf8(samples.stdout).unwrap();
    for address in [a, b] {
        let its = samples
            .lines()
            .filter(|line| line.contains(&format!("a on {address}")));
        assert!(its.count() > 0, "{samples}");
    }
    let table = String::from_utf8(run.stdout).unwrap();
    assert!(
        table.contains("All clients") && table.contains("calls itself"),
        "{table}"
    );
}

/// Jobs of several names have a sum each; a section that is not asked for does
/// not run on the servers either.
#[test]
fn jobs_of_several_names_are_added_up_by_name() {
    let bench = Bench::new();
    let servers = [Server::local(), Server::local()];
    let common = "[global]\nioengine=null\nsize=1g\nrate_iops=100\ntime_based\nruntime=1\n";
    let jobs = "[r]\nrw=read\n[w]\nrw=write\nstonewall\n[not-run]\nrw=read\n";
    let job = bench.file("two.fio", &format!("{common}{jobs}"));
    let (code, doc) = bench.json(&[
        "job",
        "run",
        job.to_str().unwrap(),
        "--section",
        "r",
        "--section",
        "w",
        "--client",
        &servers[0].address,
        &servers[1].address,
    ]);
    assert_eq!(code, 0, "{doc}");
    let names: Vec<&str> = doc["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["r", "w", "r", "w", "All clients: r", "All clients: w"]
    );
}

/// Logs that servers send lie where fio itself would have put them.
#[test]
fn logs_of_servers_are_kept_under_their_names() {
    let bench = Bench::new();
    let server = Server::local();
    let text = "[a]\nioengine=null\nrw=read\nsize=64k\nwrite_lat_log=lat\nwrite_bw_log=logs/bw\n";
    let job = bench.file("logs.fio", text);
    fs::create_dir(bench.path().join("logs")).unwrap();
    let (code, doc) = bench.json(&[
        "job",
        "run",
        job.to_str().unwrap(),
        "--client",
        &server.address,
    ]);
    assert_eq!(code, 0, "{doc}");
    for log in ["lat_lat.1.log.127.0.0.1", "logs/bw_bw.1.log.127.0.0.1"] {
        let text =
            fs::read_to_string(bench.path().join(log)).unwrap_or_else(|e| panic!("{log}: {e}"));
        assert!(!text.is_empty(), "{log}");
    }
}

/// A job file of the servers' own.
#[test]
fn a_remote_job_file_is_run_where_it_lies() {
    let bench = Bench::new();
    let servers = [Server::local(), Server::local()];
    let job = null_job(&bench, 1);
    let (a, b) = (&servers[0].address, &servers[1].address);
    let remote = ["job", "run", "--client", a, b, "--remote-config", &job];
    // What is in it is not known here: it is confirmed for each server.
    let other = ["--destroy", "elsewhere:/a.fio"];
    let refused = bench.run(&[&remote[..], &other].concat());
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    let (host, _) = a.split_once(',').unwrap();
    let words = ["--destroy", &format!("{host}:{job}")];
    let (code, doc) = bench.json(&[&remote[..], &words].concat());
    assert_eq!((code, &doc["status"]), (0, &"complete".into()), "{doc}");
    assert_eq!(total(&doc)["clients"], 2);
    let none = ["job", "run", "--client", a, b, "--remote-config", "/no.fio"];
    let words = ["--destroy", &format!("{host}:/no.fio")];
    let (code, doc) = bench.json(&[&none[..], &words].concat());
    assert_eq!(code, 1);
    assert!(
        failures(&doc)[0].1.starts_with("/no.fio on 127.0.0.1,"),
        "{doc}"
    );
}

/// `fio --client=HOST job.fio` is how people write it.
#[test]
fn a_job_file_behind_the_server_is_a_job_file() {
    let bench = Bench::new();
    let server = Server::local();
    let job = null_job(&bench, 1);
    let (code, doc) = bench.json(&["job", "run", "--client", &server.address, &job]);
    assert_eq!(code, 0, "{doc}");
    assert_eq!(
        doc["jobs"].as_array().unwrap().len(),
        1,
        "one server has no sum"
    );
}

/// A server's files are not files of this machine, though their names may be:
/// its writes were entered into the ledger of the disk under a namesake here.
#[test]
fn writes_of_servers_are_not_entered_into_ledgers_here() {
    let bench = Bench::new();
    let server = Server::local();
    let text = format!(
        "[a]\ndirectory={}\nrw=write\nbs=64k\nsize=1m\n",
        bench.path().display()
    );
    let job = bench.file("write.fio", &text);
    let state = bench.path().join("state");
    let args = ["job", "run", "-q", "--json", "--client", &server.address];
    let mut run = bench.command(&args);
    let run = run.arg(&job).env("XDG_STATE_HOME", &state).output();
    let run = run.unwrap();
    assert!(run.status.success(), "{run:?}");
    assert!(!state.exists());
}
