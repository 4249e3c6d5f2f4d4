//! What an API server was asked and what it answered: a line of JSON for each
//! exchange, with the names of the namespace and of the run left open.

use std::fs;
use std::io::{self, BufRead};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Stands for the namespace, and for the name of the run.
pub const NAMESPACE: &str = "NAMESPACE";
pub const RUN: &str = "RUN-NAME";

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// `GET /api/v1/…`, with the query.
    pub asked: String,
    /// What a review was asked about.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub about: Value,
    /// HTTP's status.
    pub status: u16,
    /// What was answered.
    #[serde(flatten)]
    pub answer: Answer,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// An object, or a status.
    Object(Value),
    /// A log.
    Text(String),
    /// What a command in a pod gave: channel and text of each message.
    Messages(Vec<(u8, String)>),
    /// What a command in a pod gives on this channel without an end.
    Flood(u8),
}

/// The file of a recording.
pub fn file(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/exchanges/recorded");
    PathBuf::from(folder).join(format!("{name}.jsonl"))
}

pub fn read(name: &str) -> Vec<Exchange> {
    let text = fs::read_to_string(file(name)).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// A request over HTTP/1.1.
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// The next one of a connection; `None` at its end.
    pub fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
                None => break,
            }
        }
        let mut request = Self {
            method,
            path,
            headers,
            body: Vec::new(),
        };
        let length = request.header("content-length").parse().unwrap_or(0);
        request.body.resize(length, 0);
        from.read_exact(&mut request.body)?;
        Ok(Some(request))
    }

    /// A header by its name in small letters; empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        let mut all = self.headers.iter();
        all.find(|(key, _)| key == name)
            .map_or("", |(_, value)| value)
    }

    /// What is asked, and what about.
    pub fn question(&self) -> (String, Value) {
        let is_review = self.path.contains("accessreviews");
        let about = match self.method.as_str() {
            "POST" if is_review => serde_json::from_slice::<Value>(&self.body)
                .map_or(Value::Null, |body| body["spec"].clone()),
            _ => Value::Null,
        };
        (format!("{} {}", self.method, self.path), about)
    }

    /// The name of the run, where this request holds it.
    pub fn run(&self) -> Option<String> {
        let body = String::from_utf8_lossy(&self.body);
        let named = [
            ("fathom%2Frun%3D", self.path.as_str()),
            ("\"fathom/run\":\"", &body),
        ];
        named.into_iter().find_map(|(before, text)| {
            let (_, behind) = text.split_once(before)?;
            let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            Some(behind[..end.unwrap_or(behind.len())].to_owned())
        })
    }
}
