use super::*;

fn parsed(text: &str, is_local: bool) -> Result<Parsed, String> {
    Parsed::of(text.as_bytes(), is_local).map_err(|refusal| refusal.status.to_owned())
}

fn get(target: &str) -> Result<Request, String> {
    let text = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    parsed(&text, true).map(|it| it.request)
}

#[test]
fn an_address_is_a_host_a_port_or_both() {
    let shown = |text: &str| text.parse().map(|it: ListenAddress| it.shown(7));
    for (text, is) in [
        ("", "127.0.0.1:7"),
        ("9100", "127.0.0.1:9100"),
        (":9100", "127.0.0.1:9100"),
        ("0.0.0.0", "0.0.0.0:7"),
        ("bench1:80", "bench1:80"),
        ("::1", "[::1]:7"),
        ("[::1]:80", "[::1]:80"),
        ("[::1]", "[::1]:7"),
    ] {
        assert_eq!(shown(text).as_deref(), Ok(is), "{text}");
    }
    for wrong in [
        "a b:80",
        "localhost:99999",
        "localhost:x",
        "http://localhost",
        "a\u{1b}",
    ] {
        assert!(shown(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_request_is_read_as_it_is_meant() {
    let request = get("/runs/a%20b?text=x+y&tag=host%3Da&text=z").unwrap();
    assert_eq!(request.path, "/runs/a b");
    assert_eq!(
        (request.value("text"), request.value("tag")),
        ("x y", "host=a")
    );
    assert_eq!(request.value("none"), "");
    for wrong in ["runs", "/%zz", "/%0", "/%ff", "/%00", "http://localhost/"] {
        assert_eq!(get(wrong), Err("400 Bad Request".to_owned()), "{wrong}");
    }
}

#[test]
fn what_is_no_look_at_a_page_is_refused() {
    let host = "Host: localhost\r\n\r\n";
    for (text, status) in [
        (
            format!("POST / HTTP/1.1\r\n{host}"),
            "405 Method Not Allowed",
        ),
        (format!("GET / HTTP/2\r\n{host}"), "400 Bad Request"),
        (format!("GET /\r\n{host}"), "400 Bad Request"),
        (
            format!("GET / HTTP/1.1\r\nHost: localhost\r\n{host}"),
            "400 Bad Request",
        ),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400 Bad Request"),
        (
            "GET / HTTP/1.1\r\nHost: localhost\r\n".to_owned(),
            "400 Bad Request",
        ),
        (
            format!("GET / HTTP/1.1\r\nContent-Length: 5\r\n{host}"),
            "400 Bad Request",
        ),
        (
            format!("GET /{} HTTP/1.1\r\n{host}", "a".repeat(HEAD_BYTES_MAX)),
            "431 Request Header Fields Too Large",
        ),
    ] {
        assert_eq!(parsed(&text, true).unwrap_err(), status, "{text:.60}");
    }
}

/// A name of elsewhere that leads to the loopback address would let a page of elsewhere
/// read what is served there.
#[test]
fn on_the_loopback_address_the_host_names_this_machine() {
    let ask = |host: &str, is_local| {
        parsed(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), is_local).map(drop)
    };
    for host in [
        "localhost",
        "LOCALHOST:80",
        "127.0.0.1:8766",
        "127.9.9.9",
        "[::1]:1",
        "[::1]",
    ] {
        assert_eq!(ask(host, true), Ok(()), "{host}");
    }
    let misdirected = Err("421 Misdirected Request".to_owned());
    for host in [
        "evil.example",
        "localhost.evil.example:80",
        "10.0.0.1",
        "",
        "[::2]",
        "127.0.0.1.evil",
    ] {
        assert_eq!(ask(host, true), misdirected, "{host}");
    }
    assert_eq!(ask("bench1:80", false), Ok(()));
}

/// What a server answers to these bytes.
fn answer(server: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    // One that is refused may be closed before all is sent.
    let _ = stream.write_all(bytes);
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

#[test]
fn a_server_answers_what_its_handler_makes_and_a_head_has_no_content() {
    let server = Server::bind(&"0".parse().unwrap(), 0).unwrap();
    let address = server.address;
    assert!(!server.is_public());
    let hello = |request: &Request| match request.path.as_str() {
        "/hello" => Response::ok("text/plain; charset=utf-8", "hello\n"),
        _ => Response::not_found(),
    };
    server.serve(Arc::new(hello)).unwrap();
    let ask = |line: &str| {
        let bytes = format!("{line} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        answer(address, bytes.as_bytes())
    };
    let said = ask("GET /hello");
    assert!(
        said.starts_with("HTTP/1.1 200 OK\r\n") && said.ends_with("\r\n\r\nhello\n"),
        "{said}"
    );
    let said = ask("HEAD /hello");
    assert!(
        said.contains("Content-Length: 6\r\n") && said.ends_with("\r\n\r\n"),
        "{said}"
    );
    assert!(ask("GET /../../etc/passwd").starts_with("HTTP/1.1 404 "));
    assert!(ask("DELETE /hello").contains("Allow: GET, HEAD\r\n"));
    // Who says nothing keeps its place, and no more than that.
    let silent: Vec<TcpStream> = (0..CONNECTIONS_MAX + 4)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let is_refused = |mut stream: &TcpStream| {
        let mut text = [0; 12];
        stream.set_read_timeout(Some(RETRY)).unwrap();
        let read = stream.read(&mut text);
        read.is_ok_and(|n| text[..n].ends_with(b" 503"))
    };
    let begun = Instant::now();
    while !silent.iter().rev().any(is_refused) {
        assert!(begun.elapsed() < REQUEST_TIME, "there is a most");
    }
    drop(silent);
    let begun = Instant::now();
    while !ask("GET /hello").ends_with("hello\n") {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "places are given back"
        );
    }
}
