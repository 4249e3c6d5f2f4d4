//! `fathom runs tag`: what is said of a run afterwards.

use fathom_model::Exit;
use fathom_record::{Entries, RunRemarks, Tag};

use crate::cmd::{ExitError, Global, show};
use crate::out;

/// Give a run tags and notes after the fact
///
/// They lie beside its log, which stays as it was written; 'compare --tag', 'history --tag' and
/// 'runs --json' see these tags like those of the beginning. Without any it shows what there is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom runs tag 20261121T1307 kernel=6.9 bios=old
  fathom runs tag 20261121T1307 --note 'the fan of this shelf was broken'
  fathom runs tag 20261121T1307 --remove bios
  fathom runs tag 20261121T1307                      its tags")]
pub struct Args {
    /// Its name or a part of it
    run: String,
    /// In the place of one of the same name
    #[arg(value_name = "NAME=VALUE")]
    tags: Vec<Tag>,
    /// Take this tag away (may be repeated)
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,
    /// What is to be known of the run; shown with its notes
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// Tags.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let dir = show::find_only(global, Some(&args.run))?;
    let entries = Entries::open(&dir)?;
    let mut remarks = RunRemarks::read(&dir)?;
    let before = remarks.clone();
    let own = entries.tags();
    for name in &args.remove {
        if !own.contains_key(name) {
            let message = format!("{} has no tag '{name}'", entries.id());
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        remarks.untag(name);
    }
    args.tags.iter().for_each(|tag| remarks.tag(tag));
    if let Some(note) = &args.note {
        let noted = remarks.note(note);
        noted.map_err(|message| ExitError::new(Exit::Usage, message))?;
    }
    if remarks != before {
        remarks.write(&dir)?;
    }
    if global.json {
        super::list(global, vec![fathom_record::ListedRun::read(&dir)])?;
    } else if !global.quiet {
        for (name, value) in entries.tags() {
            out::line(format_args!("{name}={value}"));
        }
        for note in &remarks.notes {
            let at = fathom_document::rfc3339(note.at_ms);
            out::line(format_args!("{at}  {}", note.text));
        }
    }
    Ok(Exit::Success)
}
