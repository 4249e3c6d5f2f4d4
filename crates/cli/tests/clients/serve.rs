use super::*;

#[test]
fn a_server_listens_on_one_address_and_leaves_nothing_behind() {
    let port = free_port();
    let server = Server::new(&format!(",{port}"));
    let fio = server.fio();
    // Every listening socket of fio is bound to the loopback address.
    let listening = fs::read_to_string("/proc/net/tcp").unwrap();
    let ours = format!(":{port:04X} ");
    let lines = listening
        .lines()
        .filter(|line| line.contains(&ours) && line.contains(" 0A "));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 1, "{listening}");
    assert!(lines[0].contains("0100007F:"), "{}", lines[0]);
    let bench = Bench::new();
    let job = null_job(&bench, 600);
    let address = format!("127.0.0.1,{port}");
    let mut client = bench
        .command(&["job", "run", &job, "-q", "--client", &address])
        .spawn()
        .unwrap();
    await_that("a job runs", || below(fio).len() >= 3);
    let processes = below(fio);
    drop(server);
    for pid in [&[fio][..], &processes].concat() {
        let is_gone = || !Path::new(&format!("/proc/{pid}/exe")).exists();
        await_that("the server and its jobs are gone", is_gone);
    }
    assert_eq!(client.wait().unwrap().code(), Some(1));
}

#[test]
fn every_form_of_address_is_served() {
    let bench = Bench::new();
    let socket = bench.path().join("fio.sock");
    let four = free_port();
    let own = std::process::id() % 0xfffe + 1;
    let mut forms = vec![
        format!("ip:127.0.0.1,{four}"),
        format!("sock:{}", socket.display()),
        // fio's own port: on an address that is this process's alone.
        format!("127.77.{}.{}", own >> 8, own & 255),
    ];
    match TcpListener::bind(("::1", 0)) {
        Ok(_) => forms.push(format!("ip6:::1,{}", free_port())),
        Err(error) => {
            fathom_testkit::skip("every_form_of_address_is_served: ip6", &error.to_string())
        }
    }
    let job = null_job(&bench, 1);
    let servers: Vec<Server> = forms.iter().map(|form| Server::new(form)).collect();
    let mut args = vec!["job", "run", &job, "--client"];
    args.extend(forms.iter().map(String::as_str));
    let (code, doc) = bench.json(&args);
    assert_eq!(code, 0, "{doc}");
    assert_eq!(total(&doc)["clients"], forms.len());
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a socket is for its user alone");
    drop(servers);
    let left: Vec<_> = fs::read_dir(bench.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| {
            name.to_str()
                .is_some_and(|name| name.contains("sock") || name.starts_with('.'))
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_would_listen_everywhere_or_in_anothers_place_is_refused() {
    let bench = Bench::new();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = format!("127.0.0.1,{}", taken.local_addr().unwrap().port());
    for (address, code, words) in [
        ("0.0.0.0", 4, "--all-addresses"),
        ("ip6:::", 4, "--all-addresses"),
        (taken.as_str(), 4, "already"),
        ("192.0.2.1", 5, "no address of this machine"),
        ("127.0.0.1:80", 2, "a comma before the port"),
        ("sock:/", 4, "is there already"),
    ] {
        let output = bench.run(&["serve", address]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{address}: {said}");
        assert!(said.contains(words), "{address}: {said}");
    }
}
