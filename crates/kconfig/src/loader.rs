//! How a tree is read: from which files, with which environment.

use std::io;

use crate::error::Error;
use crate::files::KconfigSource;
use crate::macros::{Env, Macros, Shell};
use crate::parser::Parser;
use crate::tree::Tree;

/// Reads trees. Without further calls the environment is empty and no command
/// may run, so that a tree means the same everywhere.
pub struct Loader<'a> {
    files: &'a dyn KconfigSource,
    env: Box<Env<'a>>,
    shell: Option<Box<Shell<'a>>>,
    prefix: String,
}

impl<'a> Loader<'a> {
    /// Reads from these files; `source` names are looked up there.
    #[must_use]
    pub fn new(files: &'a dyn KconfigSource) -> Self {
        Self {
            files,
            env: Box::new(|_| None),
            shell: None,
            prefix: "CONFIG_".to_owned(),
        }
    }

    /// Where `$(NAME)` finds variables that no file sets.
    #[must_use]
    pub fn env(mut self, env: impl Fn(&str) -> Option<String> + 'a) -> Self {
        self.env = Box::new(env);
        self
    }

    /// Allows `$(shell,COMMAND)`: gets the command, gives what it wrote to
    /// stdout. Without it, such a macro is an error.
    #[must_use]
    pub fn shell(mut self, run: impl Fn(&str) -> io::Result<String> + 'a) -> Self {
        self.shell = Some(Box::new(run));
        self
    }

    /// What stands before names in a `.config`, instead of `CONFIG_`.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Reads the tree that begins with this file.
    ///
    /// # Errors
    /// The first mistake in the files, with its place.
    pub fn load(&self, name: &str) -> Result<Tree, Error> {
        let macros = Macros::new(&*self.env, self.shell.as_deref());
        Parser::new(&self.prefix, self.files, macros)
            .run(name)?
            .finalize()
    }
}
