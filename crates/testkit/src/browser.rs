//! A Chromium without a window, spoken to over its debugging pipe.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{program, text};

/// An answer that takes longer never comes. Machines that build something at the
/// same time are slow.
const PATIENCE: Duration = Duration::from_secs(90);
/// It asks nothing of the network, and nothing of the one who runs the tests.
const OPTIONS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "--window-size=1280,900",
];

/// A browser with one page; it ends when it is dropped.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    session: String,
    asked: u64,
    errors: Vec<String>,
    /// The loader of the page that was loaded last.
    loaded: String,
    /// What it may ask for beside files.
    served: Option<String>,
    /// Profile and pipes.
    _dir: TempDir,
}

impl Browser {
    /// Starts one with an empty profile.
    ///
    /// # Errors
    /// When there is no Chromium, or it does not start.
    pub fn start() -> Result<Self, String> {
        let chromium = program("chromium")?;
        let dir = TempDir::new().map_err(|error| error.to_string())?;
        let (to, from) = (dir.path().join("to"), dir.path().join("from"));
        crate::run("mkfifo", &[text(&to), text(&from)])?;
        let profile = format!("--user-data-dir={}", dir.path().join("profile").display());
        // Chromium reads descriptor 3 and writes 4; only a shell opens those
        // without code that runs between fork and exec.
        let child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<\"$TO\" 4>\"$FROM\"", "sh"])
            .arg(chromium)
            .args(OPTIONS)
            .args([&profile, "about:blank"])
            .env("TO", &to)
            .env("FROM", &from)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("sh: {error}"))?;
        let open = |options: &mut OpenOptions, path| options.open(path).map_err(|e| e.to_string());
        // In the order in which the shell opens them: each waits for the other side.
        let to = open(OpenOptions::new().write(true), &to)?;
        let answers = open(OpenOptions::new().read(true), &from)?;
        let mut browser = Self {
            child,
            to,
            from: listen(answers),
            session: String::new(),
            asked: 0,
            errors: Vec::new(),
            loaded: String::new(),
            served: None,
            _dir: dir,
        };
        browser.attach()?;
        Ok(browser)
    }

    fn attach(&mut self) -> Result<(), String> {
        let made = self.ask("Target.createTarget", json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": made["targetId"], "flatten": true});
        let attached = self.ask("Target.attachToTarget", attach)?;
        self.session = attached["sessionId"].as_str().unwrap_or_default().into();
        for domain in [
            "Page.enable",
            "Runtime.enable",
            "Log.enable",
            "Network.enable",
        ] {
            self.ask(domain, json!({}))?;
        }
        self.ask("Page.setLifecycleEventsEnabled", json!({"enabled": true}))?;
        Ok(())
    }

    /// Opens a file and waits until it is loaded.
    ///
    /// # Errors
    /// When it is not loaded in good time.
    pub fn open(&mut self, file: &Path) -> Result<(), String> {
        self.navigate(&format!("file://{}", text(file)))
    }

    /// Opens a page of a server, which may ask for more of that server, and waits until it
    /// is loaded.
    ///
    /// # Errors
    /// When it is not loaded in good time.
    pub fn visit(&mut self, url: &str) -> Result<(), String> {
        let origin = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        self.served = Some(format!("{origin}/"));
        self.navigate(url)
    }

    fn navigate(&mut self, url: &str) -> Result<(), String> {
        let begun = self.ask("Page.navigate", json!({"url": url}))?;
        if let Some(error) = begun["errorText"].as_str() {
            return Err(format!("{url}: {error}"));
        }
        // Of this page: the one before it may be loaded only now. A place within the page
        // that is open has no loader of its own.
        let loader = begun["loaderId"]
            .as_str()
            .unwrap_or(&self.loaded)
            .to_owned();
        let begin = Instant::now();
        while self.loaded != loader {
            if begin.elapsed() > PATIENCE {
                return Err(format!("{url} is not loaded after {PATIENCE:?}"));
            }
            self.receive(PATIENCE)?;
        }
        Ok(())
    }

    /// The value of a JavaScript expression; a promise is waited for.
    ///
    /// # Errors
    /// What the expression throws.
    pub fn eval(&mut self, expression: &str) -> Result<Value, String> {
        let ask = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
        });
        let answer = self.ask("Runtime.evaluate", ask)?;
        match answer.get("exceptionDetails") {
            Some(thrown) => Err(format!("{expression}: {thrown}")),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Waits until an expression is true.
    ///
    /// # Errors
    /// When it stays false, or throws.
    pub fn wait_for(&mut self, expression: &str) -> Result<(), String> {
        self.wait(expression, false)
    }

    /// As [`Browser::wait_for`], of a page that loads itself anew: what it says or throws
    /// while it is not whole is passed over.
    ///
    /// # Errors
    /// When it stays false.
    pub fn wait_across_loads(&mut self, expression: &str) -> Result<(), String> {
        let whole = format!("document.readyState === 'complete' && ({expression})");
        self.wait(&whole, true)
    }

    fn wait(&mut self, expression: &str, loads: bool) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            let said = self.eval(expression);
            match said {
                Ok(Value::Bool(true)) => return Ok(()),
                Err(thrown) if !loads => return Err(thrown),
                _ if begin.elapsed() > PATIENCE => {
                    return Err(format!(
                        "not true after {PATIENCE:?}: {expression}: {said:?}"
                    ));
                }
                _ => thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Size of the window in px, and whether the system wants dark pages.
    ///
    /// # Errors
    /// When the browser has ended.
    pub fn look(&mut self, width: u32, height: u32, dark: bool) -> Result<(), String> {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.ask("Emulation.setDeviceMetricsOverride", size)?;
        let value = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.ask("Emulation.setEmulatedMedia", features)?;
        Ok(())
    }

    /// Writes what is in the window as PNG.
    ///
    /// # Errors
    /// When it cannot be taken or written.
    pub fn screenshot(&mut self, png: &Path) -> Result<(), String> {
        let answer = self.ask("Page.captureScreenshot", json!({"format": "png"}))?;
        save(&answer["data"], png)
    }

    /// Prints the page as PDF.
    ///
    /// # Errors
    /// When it cannot be printed or written.
    pub fn print(&mut self, pdf: &Path) -> Result<(), String> {
        let answer = self.ask("Page.printToPDF", json!({"preferCSSPageSize": true}))?;
        save(&answer["data"], pdf)
    }

    /// What the page complained of so far: exceptions, errors of the console,
    /// requests to anything but files.
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.asked += 1;
        let id = self.asked;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to
            .write_all(&bytes)
            .map_err(|error| format!("chromium has ended: {error}"))?;
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let Some(answer) = self.receive(PATIENCE)?.filter(|got| got["id"] == json!(id)) else {
                continue;
            };
            return match answer.get("error") {
                Some(error) => Err(format!("{method}: {error}")),
                None => Ok(answer["result"].clone()),
            };
        }
        Err(format!("{method}: no answer after {PATIENCE:?}"))
    }

    /// The next answer; events are taken note of.
    fn receive(&mut self, patience: Duration) -> Result<Option<Value>, String> {
        let message = self
            .from
            .recv_timeout(patience)
            .map_err(|error| format!("chromium: {error}"))?;
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Page.lifecycleEvent" if params["name"] == "load" => {
                self.loaded = params["loaderId"].as_str().unwrap_or_default().into();
            }
            "Runtime.exceptionThrown" => self.errors.push(params["exceptionDetails"].to_string()),
            "Log.entryAdded" if params["entry"]["level"] == "error" => {
                self.errors.push(params["entry"].to_string());
            }
            "Runtime.consoleAPICalled" if params["type"] == "error" => {
                self.errors.push(params["args"].to_string());
            }
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                let own = ["file:", "data:", "about:", "blob:"].into_iter();
                let mut own = own.chain(self.served.as_deref());
                if !own.any(|own| url.starts_with(own)) {
                    self.errors.push(format!("asked for {url}"));
                }
            }
            _ => {}
        }
        Ok(message.get("id").is_some().then_some(message))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends its own processes when asked to; when killed it would leave them.
        self.session.clear();
        let _ = self.ask("Browser.close", json!({}));
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > Duration::from_secs(10) {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The messages of the browser, which end with a NUL each.
fn listen(answers: File) -> Receiver<Value> {
    let (give, take) = channel();
    thread::spawn(move || {
        for message in BufReader::new(answers).split(0) {
            let Ok(message) = message else { return };
            let Ok(message) = serde_json::from_slice(&message) else {
                return;
            };
            if give.send(message).is_err() {
                return;
            }
        }
    });
    take
}

fn save(data: &Value, path: &Path) -> Result<(), String> {
    let text = data.as_str().ok_or("the browser gave no file")?;
    let bytes = base64::prelude::BASE64_STANDARD
        .decode(text)
        .map_err(|error| error.to_string())?;
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}
