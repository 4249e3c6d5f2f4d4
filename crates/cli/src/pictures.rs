//! Writing graphs, and showing them on a desktop.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Context as _;
use fathom_device::threads;
use fathom_model::Exit;
use fathom_sheet::chart::png::png;
use fathom_sheet::chart::{Size, Theme};
use fathom_sheet::graph::Graph;

use crate::exit_error::{ExitError, write_named};

/// What a graph is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum PictureFormat {
    /// Sharp at every size, text stays text
    Svg,
    /// Pixels
    Png,
}

impl PictureFormat {
    pub fn ending(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }
}

/// How graphs are drawn.
#[derive(Debug, Clone)]
pub struct PictureStyle {
    pub formats: BTreeSet<PictureFormat>,
    /// Width and height where the graph's own are not wanted.
    pub width: Option<f64>,
    pub height: Option<f64>,
    /// Pixels of a PNG for each of the SVG's.
    pub scale: f32,
    pub dark: bool,
}

impl PictureStyle {
    fn svg(&self, graph: &Graph) -> String {
        let theme = if self.dark { Theme::DARK } else { Theme::LIGHT };
        let size = Size {
            width: self.width.unwrap_or(graph.size.width),
            height: self.height.unwrap_or(graph.size.height),
        };
        graph.chart.svg(&theme, size)
    }
}

/// Draws and writes all graphs, on all processors. Returns the files' paths
/// below the folder, in the order of the graphs.
///
/// # Errors
/// When a file cannot be written.
pub fn write_all(
    folder: &Path,
    drawn: &[Graph],
    look: &PictureStyle,
) -> anyhow::Result<Vec<String>> {
    let parents: BTreeSet<&Path> = drawn
        .iter()
        .filter_map(|g| Path::new(&g.path).parent())
        .collect();
    for parent in parents {
        let dir = folder.join(parent);
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let work = || {
        while let Some(graph) = drawn.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = write(folder, graph, look) {
                // A poisoned lock: another thread panicked, which says more.
                if let Ok(mut failed) = failed.lock() {
                    failed.get_or_insert(error);
                }
                return;
            }
        }
    };
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(drawn.len());
    thread::scope(|scope| {
        for _ in 1..threads {
            // Where there is no thread to be had the others do it all.
            let _ = threads::spawn_scoped(scope, "graphs", work);
        }
        work();
    });
    if let Some(error) = failed.into_inner().ok().flatten() {
        return Err(error);
    }
    let files = drawn.iter().flat_map(|graph| {
        look.formats
            .iter()
            .map(|format| format!("{}.{}", graph.path, format.ending()))
    });
    Ok(files.collect())
}

fn write(folder: &Path, graph: &Graph, look: &PictureStyle) -> anyhow::Result<()> {
    let svg = look.svg(graph);
    for format in &look.formats {
        let path = folder.join(format!("{}.{}", graph.path, format.ending()));
        let bytes = match format {
            PictureFormat::Svg => svg.clone().into_bytes(),
            PictureFormat::Png => png(&svg, look.scale)?,
        };
        write_named(&path, bytes)?;
    }
    Ok(())
}

/// Whether there is a desktop to show something on.
pub fn has_display() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || set("DISPLAY") || set("WAYLAND_DISPLAY")
}

/// # Errors
/// When there is no desktop; `instead` says what to do then.
pub fn display(instead: &str) -> anyhow::Result<()> {
    if has_display() {
        return Ok(());
    }
    let message = format!(
        "there is no display to show plots on (neither DISPLAY nor WAYLAND_DISPLAY is set): {instead}"
    );
    Err(ExitError::new(Exit::Missing, message).into())
}

/// Shows graphs on the desktop, all on one page in its browser, which outlives
/// this command. Returns the page.
///
/// # Errors
/// When there is no display, or nothing to open the page with; `instead` says
/// what to do then.
pub fn show(
    drawn: &[Graph],
    title: &str,
    look: &PictureStyle,
    instead: &str,
) -> anyhow::Result<PathBuf> {
    display(instead)?;
    let folder = private_folder()?;
    let page = folder.join("plots.html");
    fs::write(&page, html(drawn, title, look))
        .with_context(|| format!("cannot write {}", page.display()))?;
    open(page.as_os_str()).map_err(|error| {
        let _ = fs::remove_dir_all(&folder);
        let message = format!("cannot show the plots: {error}; {instead}");
        ExitError::new(Exit::Missing, message)
    })?;
    Ok(page)
}

/// A new folder that nobody else can look or write into.
fn private_folder() -> anyhow::Result<PathBuf> {
    let base = std::env::temp_dir();
    for number in 0..100 {
        let folder = base.join(format!("fathom-plots-{}-{number}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot make {}", folder.display()));
            }
        }
    }
    anyhow::bail!("cannot make a folder in {}", base.display())
}

fn html(drawn: &[Graph], title: &str, look: &PictureStyle) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    let (ground, ink) = match look.dark {
        true => ("#0e1116", "#f0f2f5"),
        false => ("#f3f4f6", "#1f2328"),
    };
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>body{{margin:24px;background:{ground};color:{ink};font-family:sans-serif;\
         display:flex;flex-wrap:wrap;gap:20px}}h1{{width:100%;font-size:20px;margin:0}}\
         svg{{border-radius:6px}}</style><h1>{title}</h1>\n"
    );
    for (number, graph) in drawn.iter().enumerate() {
        // A page has each id once.
        let svg = look
            .svg(graph)
            .replace("id=\"t\"", &format!("id=\"t{number}\""))
            .replace("id=\"d\"", &format!("id=\"d{number}\""))
            .replace("\"t d\"", &format!("\"t{number} d{number}\""));
        let _ = writeln!(page, "{svg}");
    }
    page
}

/// Hands a file to the desktop, whose program for it outlives this command.
///
/// # Errors
/// When the desktop's own opener cannot be started; the message names it.
pub fn open(file: &OsStr) -> Result<(), String> {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    Command::new(opener)
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
        .map_err(|error| format!("{opener} cannot be started ({error})"))
}
