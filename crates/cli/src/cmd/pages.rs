//! Pages that a browser asks Fathom for: served until Ctrl-C.

use std::sync::Arc;
use std::time::Duration;

use fathom_model::Exit;
use schemars::JsonSchema;
use serde::Serialize;

use super::Global;
use crate::http::{Handler, Server};
use crate::{out, pictures, signals};

/// How often signals are looked at, and what else is to be told.
const TICK: Duration = Duration::from_millis(500);

/// What `--json` prints when pages are served.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PagesDocument {
    /// `fathom.pages/1`
    schema: &'static str,
    /// Where a browser finds them.
    url: String,
}

/// Serves pages until somebody ends it; `look` is called twice a second.
///
/// # Errors
/// When no threads are to be had.
pub fn serve(
    global: &Global,
    server: Server,
    open: bool,
    handler: Arc<Handler>,
    look: &mut dyn FnMut(),
) -> anyhow::Result<Exit> {
    let control = signals::control()?;
    let url = server.url();
    if server.is_public() && !global.quiet {
        out::note("everybody who reaches that address can read all of it");
    }
    server.serve(handler)?;
    match global.json {
        true => out::json(&PagesDocument {
            schema: "fathom.pages/1",
            url: url.clone(),
        })?,
        false => out::line(format_args!("{url}  (Ctrl-C ends it)")),
    }
    if open && let Err(error) = pictures::open(url.as_ref()) {
        out::note(format_args!("{error}; open {url} in any browser"));
    }
    while control.stop_requests() == 0 {
        look();
        std::thread::sleep(TICK);
    }
    Ok(Exit::Success)
}
