//! Between Fathom and a real API server: passes everything on, and keeps it.

use std::io::{BufReader, Cursor, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

use crate::cluster::Place;
use crate::tape::{Answer, Exchange, NAMESPACE, RUN, Request};

/// A way to the cluster that keeps what goes along it. (`kubectl proxy` knows the
/// keys; a socket of it can be reached from outside the cluster's network.)
pub struct Recorder {
    proxy: Child,
    port: u16,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    exchanges: Vec<Exchange>,
    run: Option<String>,
}

impl Recorder {
    /// A recorder; `account` is the one that is acted as.
    pub fn new(place: &Place, account: Option<&str>) -> Self {
        let socket = place.path("proxy");
        let _ = std::fs::remove_file(&socket);
        let named = format!("--unix-socket={}", socket.display());
        let mut args = vec!["proxy", &named, "--reject-paths=^$", "--reject-methods=^$"];
        args.extend(
            account
                .map(|account| ["--as", account])
                .into_iter()
                .flatten(),
        );
        let proxy = place.kubectl_command(&args).spawn().unwrap();
        place.wait_for("the proxy listens", || UnixStream::connect(&socket).is_ok());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let kept = Arc::<Mutex<Kept>>::default();
        let shared = Arc::clone(&kept);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, socket) = (Arc::clone(&shared), socket.clone());
                std::thread::spawn(move || serve(stream, &socket, &kept));
            }
        });
        Self { proxy, port, kept }
    }

    pub fn kubeconfig(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://127.0.0.1:{}", self.port)}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        })
    }

    /// What went along, with the names of the run and the namespace left open;
    /// the same answer to the same question is kept once.
    pub fn exchanges(&self, namespace: &str) -> Vec<Exchange> {
        let kept = self.kept.lock().unwrap();
        let mut all: Vec<Exchange> = Vec::new();
        for exchange in &kept.exchanges {
            let mut text = serde_json::to_string(exchange).unwrap();
            if let Some(run) = &kept.run {
                text = text.replace(run.as_str(), RUN);
            }
            let text = text.replace(namespace, NAMESPACE);
            let exchange: Exchange = serde_json::from_str(&text).unwrap();
            let same =
                |other: &&Exchange| other.asked == exchange.asked && other.about == exchange.about;
            if all.iter().rev().find(same) != Some(&exchange) {
                all.push(exchange);
            }
        }
        all
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}

fn serve(stream: TcpStream, socket: &Path, kept: &Mutex<Kept>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Ok(Some(request)) = Request::read(&mut reader) {
        if let Some(run) = request.run() {
            kept.lock().unwrap().run = Some(run);
        }
        if request.header("upgrade").eq_ignore_ascii_case("websocket") {
            return pass(stream, reader, socket, &request, kept);
        }
        let Some((status, kind, body)) = ask(socket, &request) else {
            return;
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Passed\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        );
        let (asked, about) = request.question();
        let answer = match serde_json::from_slice::<Value>(&body) {
            Ok(mut object) => {
                strip(&mut object);
                Answer::Object(object)
            }
            Err(_) => Answer::Text(String::from_utf8_lossy(&body).into_owned()),
        };
        let exchange = Exchange {
            asked,
            about,
            status,
            answer,
        };
        kept.lock().unwrap().exchanges.push(exchange);
        if stream
            .write_all(&[head.as_bytes(), &body].concat())
            .is_err()
        {
            return;
        }
    }
}

/// Asks with HTTP/1.0, whose answers end with the connection.
fn ask(socket: &Path, request: &Request) -> Option<(u16, String, Vec<u8>)> {
    let mut proxy = UnixStream::connect(socket).ok()?;
    let head = format!(
        "{} {} HTTP/1.0\r\nHost: localhost\r\nAccept: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
        request.method,
        request.path,
        request.header("accept"),
        request.header("content-type"),
        request.body.len()
    );
    let asked = [head.as_bytes(), &request.body].concat();
    proxy.write_all(&asked).ok()?;
    let mut all = Vec::new();
    proxy.read_to_end(&mut all).ok()?;
    let end = all.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    let kind = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Type: "));
    Some((
        status,
        kind.unwrap_or_default().to_owned(),
        all[end + 4..].to_vec(),
    ))
}

/// A command in a pod: bytes both ways, and the messages that came back kept.
fn pass(
    mut stream: TcpStream,
    mut reader: BufReader<TcpStream>,
    socket: &Path,
    request: &Request,
    kept: &Mutex<Kept>,
) {
    let mut proxy = UnixStream::connect(socket).unwrap();
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    proxy.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    let mut there = proxy.try_clone().unwrap();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut reader, &mut there);
        let _ = there.shutdown(std::net::Shutdown::Write);
    });
    let mut back = Vec::new();
    let mut buffer = [0; 1 << 16];
    while let Ok(n @ 1..) = proxy.read(&mut buffer) {
        back.extend(&buffer[..n]);
        if stream.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(std::net::Shutdown::Both);
    let (asked, about) = request.question();
    let exchange = answered(asked, about, &back);
    kept.lock().unwrap().exchanges.push(exchange);
}

/// What the bytes of an upgraded connection, or of a refusal, say.
fn answered(asked: String, about: Value, back: &[u8]) -> Exchange {
    let end = back.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.map_or(back.len(), |end| end + 4);
    let head = String::from_utf8_lossy(&back[..end]).into_owned();
    let status = head
        .split_whitespace()
        .nth(1)
        .and_then(|code| code.parse().ok());
    let status = status.unwrap_or(500);
    if status != 101 {
        let object = serde_json::from_slice(&back[end..]).unwrap_or_default();
        let answer = Answer::Object(object);
        return Exchange {
            asked,
            about,
            status,
            answer,
        };
    }
    let mut messages: Vec<(u8, String)> = Vec::new();
    let bytes = Cursor::new(back[end..].to_vec());
    let mut socket = WebSocket::from_raw_socket(bytes, Role::Client, None);
    while let Ok(message) = socket.read() {
        if let Message::Binary(bytes) = message
            && let Some((channel, text)) = bytes.split_first()
        {
            let text = String::from_utf8_lossy(text).into_owned();
            match messages.last_mut().filter(|last| last.0 == *channel) {
                Some(last) => last.1.push_str(&text),
                None if text.is_empty() => {}
                None => messages.push((*channel, text)),
            }
        }
    }
    let answer = Answer::Messages(messages);
    Exchange {
        asked,
        about,
        status,
        answer,
    }
}

/// Without what is different each time and nobody reads.
fn strip(object: &mut Value) {
    match object {
        Value::Object(map) => {
            for noise in ["managedFields", "resourceVersion", "generation"] {
                map.remove(noise);
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
