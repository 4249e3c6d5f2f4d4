//! Which words are replaced, and by what.

use std::collections::BTreeMap;
use std::net::IpAddr;

use memchr::memmem;
use serde_json::Value;

use super::looks::{is_address, is_common, is_identity, is_of_name, is_path, leading_name, tokens};

/// What a word is a name of: the beginning of its pseudonym.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WordKind {
    Host,
    Domain,
    User,
    Serial,
    Path,
    Address,
    Url,
}

impl WordKind {
    fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Domain => "domain",
            Self::User => "user",
            Self::Serial => "serial",
            // As a path, so that it is read as one.
            Self::Path => "/path",
            Self::Address => "address",
            Self::Url => "url",
        }
    }
}

/// Fields whose strings are names of these kinds, wherever they stand.
const FIELDS: [(&str, WordKind); 36] = [
    ("hostname", WordKind::Host),
    ("host", WordKind::Host),
    ("hosts", WordKind::Host),
    ("node", WordKind::Host),
    ("nodes", WordKind::Host),
    ("servers", WordKind::Host),
    ("user", WordKind::User),
    ("username", WordKind::User),
    ("serial", WordKind::Serial),
    ("by_id", WordKind::Serial),
    ("by_path", WordKind::Serial),
    ("unique_id", WordKind::Serial),
    ("wwn", WordKind::Serial),
    ("wwid", WordKind::Serial),
    ("nguid", WordKind::Serial),
    ("eui64", WordKind::Serial),
    ("eui", WordKind::Serial),
    ("uuid", WordKind::Serial),
    ("nqn", WordKind::Serial),
    ("path", WordKind::Path),
    ("mount_point", WordKind::Path),
    ("source", WordKind::Path),
    ("folder", WordKind::Path),
    ("backing", WordKind::Path),
    ("backing_file", WordKind::Path),
    ("limit_rbps_group", WordKind::Path),
    ("limit_wbps_group", WordKind::Path),
    ("limit_riops_group", WordKind::Path),
    ("limit_wiops_group", WordKind::Path),
    ("cpu_throttled_in", WordKind::Path),
    ("work_dir", WordKind::Path),
    ("file", WordKind::Path),
    ("filename", WordKind::Path),
    ("directory", WordKind::Path),
    ("command", WordKind::Path),
    ("argv", WordKind::Path),
];
/// Those of them whose paths may be relative.
const RELATIVE: [&str; 5] = ["path", "filename", "directory", "mount_point", "command"];
/// Options of a line of text whose values are names of users.
const USER_OPTIONS: [&str; 3] = ["user", "username", "login"];
/// Words that name nobody, or that a record itself is made of. Where one of them is a
/// host's name it is replaced in the fields of hosts alone.
const COMMON_WORDS: [&str; 40] = [
    "localhost",
    "root",
    "host",
    "hosts",
    "node",
    "server",
    "client",
    "user",
    "path",
    "serial",
    "address",
    "domain",
    "disk",
    "device",
    "drive",
    "file",
    "data",
    "test",
    "name",
    "read",
    "write",
    "trim",
    "mixed",
    "sample",
    "step",
    "stage",
    "note",
    "event",
    "linux",
    "kernel",
    "fio",
    "native",
    "fathom",
    "none",
    "local",
    "complete",
    "failed",
    "job",
    "jobs",
    "run",
];
/// A word that is shorter says nothing by itself: it stands in too many others.
const LENGTH_MIN: usize = 3;
/// A longer word is found within others as well.
const LENGTH_LONG: usize = 8;

/// All words that are replaced, each with what stands for it.
#[derive(Debug, Default)]
pub(super) struct Pseudonyms {
    /// By the word itself.
    known: BTreeMap<String, String>,
    counts: BTreeMap<WordKind, u32>,
    /// Those that are looked for everywhere, the longest first.
    everywhere: Vec<String>,
}

impl Pseudonyms {
    /// Takes the words that typed fields hold, and those beside them.
    pub(super) fn learn(&mut self, value: &Value) {
        self.learn_in(value, "");
    }

    fn learn_in(&mut self, value: &Value, key: &str) {
        match value {
            Value::String(text) => {
                let is_relative = !text.starts_with(['/', '~', '-']);
                match kind_of(key) {
                    Some(WordKind::Path) if is_relative && !RELATIVE.contains(&key) => {}
                    Some(kind) => self.learn_word(kind, text),
                    None => {}
                }
                self.learn_from_text(text);
            }
            Value::Array(all) => all.iter().for_each(|it| self.learn_in(it, key)),
            Value::Object(fields) => {
                let models = fields.get("model").and_then(Value::as_str);
                for (name, it) in fields {
                    match (key, name.as_str()) {
                        // A machine's name, among the machines.
                        ("hosts" | "nodes", "name") => self.learn_in(it, "host"),
                        // Names of a drive have its number in them, behind its model.
                        (_, "by_id") => self.learn_ids(it, models.unwrap_or_default()),
                        _ => self.learn_in(it, last_part(name)),
                    }
                }
            }
            _ => {}
        }
    }

    fn learn_ids(&mut self, names: &Value, model: &str) {
        let model = model.to_lowercase();
        for name in names.as_array().into_iter().flatten() {
            let Some(name) = name.as_str() else { continue };
            self.learn_word(WordKind::Serial, name);
            let parts = name.split(['-', '_', '.', ':', '/']);
            for part in parts.filter(|it| it.len() >= LENGTH_LONG) {
                let is_number = part.bytes().any(|c| c.is_ascii_digit());
                if is_number && !model.contains(&part.to_lowercase()) {
                    self.learn_word(WordKind::Serial, part);
                }
            }
        }
    }

    fn learn_word(&mut self, kind: WordKind, word: &str) {
        let word = word.trim();
        match kind {
            WordKind::Path => {
                let is_one = word.contains('/')
                    && (word.starts_with('/') || !word.contains(char::is_whitespace));
                let is_option = word.starts_with('-') || word.contains("://");
                if is_one && !is_option && !is_common(word) {
                    self.enter(kind, word);
                }
            }
            WordKind::Serial => {
                self.enter(kind, word);
                let bare = word.strip_prefix("0x").unwrap_or(word);
                if bare != word {
                    self.enter(kind, bare);
                }
            }
            // As it was named: `root@lab1,8765`, `10.0.0.3`, `db1.corp.example`.
            WordKind::Host => {
                let word = word.rsplit('@').next().unwrap_or(word);
                let word = word.split([',', '/']).next().unwrap_or(word);
                if word.parse::<IpAddr>().is_ok() {
                    self.enter(WordKind::Address, word);
                    return;
                }
                let word = word.split(':').next().unwrap_or(word);
                self.enter(kind, word);
                if let Some((short, domain)) = word.split_once('.') {
                    let whole = self.of(kind, word);
                    self.enter_as(short, &whole);
                    if domain.contains('.') {
                        self.enter(WordKind::Domain, domain);
                    }
                }
            }
            _ => self.enter(kind, word),
        }
    }

    /// Takes the users and hosts that a text speaks of.
    pub(super) fn learn_from_text(&mut self, text: &str) {
        for folder in ["home", "Users"] {
            let homes = text.match_indices(folder);
            for (at, _) in homes.filter(|&(at, _)| text[..at].ends_with('/')) {
                if let Some(rest) = text[at + folder.len()..].strip_prefix('/') {
                    self.learn_word(WordKind::User, leading_name(rest));
                }
            }
        }
        for (before, token) in tokens(text) {
            if USER_OPTIONS
                .iter()
                .any(|option| before.ends_with(&format!("{option}=")))
            {
                self.learn_word(WordKind::User, token);
            }
            if let Some((user, host)) = token.split_once('@')
                && !user.is_empty()
                && user.chars().all(is_of_name)
            {
                self.learn_word(WordKind::User, user);
                self.learn_word(WordKind::Host, leading_name(host));
            }
        }
    }

    /// The pseudonym of a word.
    fn of(&mut self, kind: WordKind, word: &str) -> String {
        let key = word.to_lowercase();
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let pseudonym = format!("{}-{count}", kind.name());
        self.known.insert(key, pseudonym.clone());
        pseudonym
    }

    fn enter(&mut self, kind: WordKind, word: &str) {
        let pseudonym = self.of(kind, word);
        self.enter_as(word, &pseudonym);
    }

    /// From now on the word is looked for everywhere.
    fn enter_as(&mut self, word: &str, pseudonym: &str) {
        let lower = word.to_lowercase();
        self.known
            .entry(lower.clone())
            .or_insert_with(|| pseudonym.to_owned());
        let is_telling = word.len() >= LENGTH_MIN
            && word.bytes().any(|c| !c.is_ascii_digit() && c != b'.')
            && !COMMON_WORDS.contains(&lower.as_str());
        // A serial number of digits alone is one when it is long.
        if !is_telling && word.len() < LENGTH_LONG {
            return;
        }
        for form in [word.to_owned(), lower, word.to_uppercase()] {
            if !self.everywhere.contains(&form) {
                self.everywhere.push(form);
            }
        }
        self.everywhere
            .sort_by(|a, b| (b.len(), a).cmp(&(a.len(), b)));
    }

    /// The value with pseudonyms, by its fields and in all of its texts.
    pub(super) fn redact_value(&mut self, value: Value, key: &str) -> Value {
        match value {
            Value::String(text) => Value::String(self.redact_field(key, &text)),
            Value::Array(all) => Value::Array(
                all.into_iter()
                    .map(|it| self.redact_value(it, key))
                    .collect(),
            ),
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, it)| {
                    let within = match (key, name.as_str()) {
                        ("hosts" | "nodes", "name") => "host",
                        _ => last_part(&name),
                    };
                    let it = self.redact_value(it, within);
                    (self.replace(&name), it)
                });
                Value::Object(fields.collect())
            }
            other => other,
        }
    }

    fn redact_field(&mut self, key: &str, text: &str) -> String {
        let whole = self.known.get(&text.trim().to_lowercase());
        match (kind_of(key), whole) {
            (Some(_), Some(pseudonym)) => pseudonym.clone(),
            // Four numbers with dots between them are no address here.
            (None, _) if key.ends_with("version") || ["kernel", "firmware"].contains(&key) => {
                self.replace(text)
            }
            _ => self.redact(text),
        }
    }

    /// A text with pseudonyms for the words that are known, and for whatever looks like a
    /// path, an address or an identity.
    pub(super) fn redact(&mut self, text: &str) -> String {
        let known = self.replace(text);
        let mut redacted = String::with_capacity(known.len());
        let mut done = 0;
        for (before, token) in tokens(&known) {
            let at = before.len();
            redacted += &known[done..at];
            redacted += &self.redact_token(token);
            done = at + token.len();
        }
        redacted + &known[done..]
    }

    /// The known words alone: all are looked for in the text as it was, the longest
    /// first, so that what stands for one is not taken for another.
    pub(super) fn replace(&self, text: &str) -> String {
        let mut found: BTreeMap<usize, (usize, &str)> = BTreeMap::new();
        for word in &self.everywhere {
            if memmem::find(text.as_bytes(), word.as_bytes()).is_none() {
                continue;
            }
            let Some(pseudonym) = self.known.get(&word.to_lowercase()) else {
                continue;
            };
            for at in places(text, word) {
                let end = at + word.len();
                let taken = found.range(..end).next_back();
                if taken.is_none_or(|(_, (before, _))| *before <= at) {
                    found.insert(at, (end, pseudonym));
                }
            }
        }
        let mut replaced = String::with_capacity(text.len());
        let mut done = 0;
        for (at, (end, pseudonym)) in found {
            replaced += &text[done..at];
            replaced += pseudonym;
            done = end;
        }
        replaced + &text[done..]
    }

    fn redact_token(&mut self, token: &str) -> String {
        let word = token.trim_end_matches(['.', ':', '!', '?']);
        let end = &token[word.len()..];
        if word.contains("://") {
            return self.of(WordKind::Url, word) + end;
        }
        if is_address(word) {
            return self.of(WordKind::Address, word) + end;
        }
        if is_identity(word) {
            return self.of(WordKind::Serial, word) + end;
        }
        // fio has colons between paths, ssh and NFS before one.
        let parts = word.split(':').map(|part| match part {
            _ if is_path(part) => self.of(WordKind::Path, part),
            _ if is_address(part) => self.of(WordKind::Address, part),
            _ => part.to_owned(),
        });
        parts.collect::<Vec<_>>().join(":") + end
    }
}

fn kind_of(key: &str) -> Option<WordKind> {
    FIELDS
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, kind)| *kind)
}

/// `backing_file` of the setting `loop0.backing_file`.
fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Every place of a word; of a short one only where it stands by itself.
fn places<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> {
    let is_long = word.len() >= LENGTH_LONG && !word.contains('/');
    let is_of_word = |c: char| c.is_alphanumeric();
    let all = text.match_indices(word).map(|(at, _)| at);
    all.filter(move |&at| {
        let before = text[..at].chars().next_back().is_some_and(is_of_word);
        let rest = &text[at + word.len()..];
        let after = rest.chars().next().is_some_and(is_of_word);
        is_long || !(before || after)
    })
}
