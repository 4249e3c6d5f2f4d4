//! An API server that gives recorded answers, on an address of this machine only.

use std::collections::HashMap;
use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

use crate::exchanges::tape::{Answer, Exchange, NAMESPACE, RUN, Request};

/// The status of an answer that never comes.
pub const NEVER: u16 = 0;

/// Answers each question as it was answered, in order; the last answer stays. A
/// question that ends with `*` is every one that begins so.
pub struct Player {
    port: u16,
    tape: Arc<Mutex<Tape>>,
}

struct Tape {
    exchanges: Vec<Exchange>,
    namespace: String,
    /// Name of the run, once it was told.
    run: Option<String>,
    /// How often each question was asked.
    times: HashMap<(String, String), usize>,
    asked: Vec<String>,
    unknown: Vec<String>,
}

impl Player {
    /// Plays exchanges to whoever works in a namespace.
    pub fn new(exchanges: Vec<Exchange>, namespace: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let tape = Arc::new(Mutex::new(Tape {
            exchanges,
            namespace: namespace.to_owned(),
            run: None,
            times: HashMap::new(),
            asked: Vec::new(),
            unknown: Vec::new(),
        }));
        let shared = Arc::clone(&tape);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let tape = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &tape));
            }
        });
        Self { port, tape }
    }

    pub fn kubeconfig(&self) -> Value {
        kubeconfig(self.port)
    }

    /// What was asked so far, in order, with the names left open.
    pub fn asked(&self) -> Vec<String> {
        self.tape.lock().unwrap().asked.clone()
    }

    /// What was asked that was not recorded.
    pub fn unknown(&self) -> Vec<String> {
        self.tape.lock().unwrap().unknown.clone()
    }
}

/// The way to a server on a port of this machine, without any secret.
pub fn kubeconfig(port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "played", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "played", "context": {"cluster": "played", "user": "nobody"}}],
        "current-context": "played",
    })
}

impl Tape {
    fn answer(&mut self, request: &Request) -> (u16, Answer) {
        if let Some(run) = request.run() {
            self.run = Some(run);
        }
        let (asked, about) = request.question();
        let asked = self.open(&asked);
        let about: Value = serde_json::from_str(&self.open(&about.to_string())).unwrap();
        // Nothing is removed but the very object that was seen.
        let body = String::from_utf8_lossy(&request.body);
        if request.method == "DELETE" && !body.contains("\"uid\"") {
            self.unknown.push(format!("{asked} without an id"));
        }
        self.asked.push(asked.clone());
        let fits = |exchange: &&Exchange| {
            let is_it = match exchange.asked.strip_suffix('*') {
                Some(begin) => asked.starts_with(begin),
                None => exchange.asked == asked,
            };
            is_it && exchange.about == about
        };
        let fitting: Vec<&Exchange> = self.exchanges.iter().filter(fits).collect();
        let key = fitting.first().map_or(&asked, |first| &first.asked).clone();
        let times = self.times.entry((key, about.to_string())).or_default();
        let place = *times;
        *times += 1;
        if let Some(exchange) = fitting.get(place).or(fitting.last()) {
            let told = serde_json::to_string(&exchange.answer).unwrap();
            let told = told.replace(NAMESPACE, &self.namespace);
            let told = told.replace(RUN, self.run.as_deref().unwrap_or(RUN));
            return (exchange.status, serde_json::from_str(&told).unwrap());
        }
        // Which pods a removal finds is a matter of time: those it did not find
        // were gone.
        if request.method != "DELETE" {
            self.unknown.push(asked);
        }
        let gone = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "not found", "reason": "NotFound", "code": 404});
        (404, Answer::Object(gone))
    }

    /// A text with the names left open.
    fn open(&self, text: &str) -> String {
        let text = match &self.run {
            Some(run) => text.replace(run, RUN),
            None => text.to_owned(),
        };
        text.replace(&self.namespace, NAMESPACE)
    }
}

fn serve(stream: TcpStream, tape: &Mutex<Tape>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Ok(Some(request)) = Request::read(&mut reader) {
        let (status, answer) = tape.lock().unwrap().answer(&request);
        if status == NEVER {
            // Until whoever asked has given up.
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
            return;
        }
        let (kind, body) = match answer {
            Answer::Object(object) => ("application/json", object.to_string()),
            Answer::Text(text) => ("text/plain", text),
            Answer::Messages(messages) => {
                return converse(stream, &request, messages.into_iter());
            }
            Answer::Flood(channel) => {
                let noise = (channel, "noise\n".repeat(8 << 10));
                return converse(stream, &request, std::iter::repeat(noise));
            }
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Played\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        );
        if stream.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

/// A command in a pod: its messages, then the end.
fn converse(
    mut stream: TcpStream,
    request: &Request,
    messages: impl Iterator<Item = (u8, String)>,
) {
    let key = derive_accept_key(request.header("sec-websocket-key").as_bytes());
    let offered = request.header("sec-websocket-protocol");
    let protocol = offered.split(',').next().unwrap_or_default().trim();
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {key}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut rest = stream.try_clone().unwrap();
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
    for (channel, text) in messages {
        let message = [&[channel], text.as_bytes()].concat();
        if socket.send(Message::Binary(message.into())).is_err() {
            // Whoever asked has heard enough.
            return;
        }
    }
    let _ = socket.close(None);
    let _ = socket.flush();
    // What comes in is taken: a socket that is closed before takes with it what
    // was sent.
    let _ = std::io::copy(&mut rest, &mut std::io::sink());
}
