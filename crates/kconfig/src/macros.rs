//! The macro language: variables, functions, and the environment
//! (Documentation/kbuild/kconfig-macro-language.rst of the Linux kernel).

use std::collections::HashMap;
use std::io;

use crate::limits::{MAX_BYTES, MAX_EXPANSION_BYTES, MAX_EXPANSIONS, MAX_MACRO_DEPTH};

/// How a variable was given its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assign {
    /// `=`: expanded where it is used.
    Recursive,
    /// `:=`: expanded here and now.
    Simple,
    /// `+=`: as it was, else as `=`.
    Append,
}

#[derive(Debug)]
struct Variable {
    value: String,
    recursive: bool,
    expanding: bool,
}

/// Where an expansion happens, for `$(filename)` and `$(lineno)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpansionPlace<'p> {
    pub(crate) file: &'p str,
    pub(crate) line: u32,
}

/// Reads a variable of the environment.
pub(crate) type Env<'a> = dyn Fn(&str) -> Option<String> + 'a;
/// Runs a command and gives what it wrote to stdout.
pub(crate) type Shell<'a> = dyn Fn(&str) -> io::Result<String> + 'a;

pub(crate) struct Macros<'a> {
    variables: HashMap<String, Variable>,
    env: &'a Env<'a>,
    shell: Option<&'a Shell<'a>>,
    /// What `$(info,…)` said.
    pub(crate) messages: Vec<String>,
    /// What `$(warning-if,…)` said and what is doubtful, without the place.
    pub(crate) warnings: Vec<String>,
    expansions: usize,
    bytes: usize,
}

/// What went wrong, without the place.
type Expanded = Result<String, String>;

impl<'a> Macros<'a> {
    pub(crate) fn new(env: &'a Env<'a>, shell: Option<&'a Shell<'a>>) -> Self {
        Self {
            variables: HashMap::new(),
            env,
            shell,
            messages: Vec::new(),
            warnings: Vec::new(),
            expansions: 0,
            bytes: 0,
        }
    }

    pub(crate) fn env(&self, name: &str) -> Option<String> {
        (self.env)(name)
    }

    /// `name = value` and its kin.
    pub(crate) fn assign(
        &mut self,
        name: &str,
        how: Assign,
        value: &str,
        place: ExpansionPlace<'_>,
    ) -> Result<(), String> {
        self.count(value.len())?;
        let simple = match how {
            Assign::Simple => true,
            Assign::Recursive => false,
            Assign::Append => self.variables.get(name).is_some_and(|old| !old.recursive),
        };
        let value = if simple {
            self.expand(value, place)?
        } else {
            value.to_owned()
        };
        match self.variables.get_mut(name) {
            Some(old) if how == Assign::Append => {
                if old.value.len() + value.len() > MAX_EXPANSION_BYTES {
                    return Err(format!("{name} has become too long"));
                }
                old.value.push(' ');
                old.value.push_str(&value);
            }
            _ => {
                let variable = Variable {
                    value,
                    recursive: !simple,
                    expanding: false,
                };
                self.variables.insert(name.to_owned(), variable);
            }
        }
        Ok(())
    }

    /// The text with every `$(…)` replaced.
    pub(crate) fn expand(&mut self, text: &str, place: ExpansionPlace<'_>) -> Expanded {
        self.expand_in(text, &[], place, 0)
    }

    fn expand_in(
        &mut self,
        text: &str,
        args: &[String],
        place: ExpansionPlace<'_>,
        depth: usize,
    ) -> Expanded {
        if depth > MAX_MACRO_DEPTH {
            return Err(format!("macros nest deeper than {MAX_MACRO_DEPTH}"));
        }
        let (mut out, mut rest) = (String::new(), text);
        while let Some(at) = rest.find("$(") {
            out.push_str(&rest[..at]);
            let inner = &rest[at + 2..];
            let end = closing(inner).ok_or("$( without its )")?;
            out.push_str(&self.reference(&inner[..end], args, place, depth)?);
            rest = &inner[end + 1..];
            if out.len() > MAX_EXPANSION_BYTES {
                return Err(format!(
                    "it expands to more than {MAX_EXPANSION_BYTES} bytes"
                ));
            }
        }
        out.push_str(rest);
        self.count(out.len())?;
        Ok(out)
    }

    /// What stands between `$(` and `)`: a name and arguments after commas.
    fn reference(
        &mut self,
        inner: &str,
        args: &[String],
        place: ExpansionPlace<'_>,
        depth: usize,
    ) -> Expanded {
        self.expansions += 1;
        if self.expansions > MAX_EXPANSIONS {
            return Err(format!(
                "the files expand more than {MAX_EXPANSIONS} macros"
            ));
        }
        let mut own = Vec::new();
        for part in arguments(inner) {
            own.push(self.expand_in(part, args, place, depth + 1)?);
        }
        let name = own[0].clone();
        if own.len() == 1 {
            // A parameter of the function around.
            if let Some(arg) = name.parse::<usize>().ok().and_then(|n| args.get(n)) {
                return Ok(arg.clone());
            }
        }
        if self.variables.contains_key(&name) {
            return self.variable(&name, &own, place, depth);
        }
        if let Some(result) = self.function(&name, &own[1..], place) {
            return result;
        }
        if own.len() > 1 {
            self.warnings.push(format!(
                "there is no function {name}: it expands to nothing"
            ));
            return Ok(String::new());
        }
        Ok((self.env)(&name).unwrap_or_default())
    }

    fn variable(
        &mut self,
        name: &str,
        args: &[String],
        place: ExpansionPlace<'_>,
        depth: usize,
    ) -> Expanded {
        let variable = self
            .variables
            .get_mut(name)
            .expect("the caller has found it");
        if !variable.recursive {
            return Ok(variable.value.clone());
        }
        if variable.expanding && args.len() == 1 {
            return Err(format!("the variable {name} uses itself"));
        }
        let before = std::mem::replace(&mut variable.expanding, true);
        let value = variable.value.clone();
        let result = self.expand_in(&value, args, place, depth + 1);
        if let Some(variable) = self.variables.get_mut(name) {
            variable.expanding = before;
        }
        result
    }

    /// A built-in function, or nothing when there is none of this name.
    fn function(
        &mut self,
        name: &str,
        args: &[String],
        place: ExpansionPlace<'_>,
    ) -> Option<Expanded> {
        let wanted = match name {
            "filename" | "lineno" => 0,
            "info" | "shell" => 1,
            "warning-if" | "error-if" => 2,
            _ => return None,
        };
        if args.len() != wanted {
            let said = args.len();
            return Some(Err(format!(
                "$({name}) takes {wanted} arguments, not {said}"
            )));
        }
        Some(match name {
            "filename" => Ok(place.file.to_owned()),
            "lineno" => Ok(place.line.to_string()),
            "info" => {
                self.messages.push(args[0].clone());
                Ok(String::new())
            }
            "warning-if" => {
                if args[0] == "y" {
                    self.warnings.push(args[1].clone());
                }
                Ok(String::new())
            }
            "error-if" if args[0] == "y" => Err(args[1].clone()),
            "error-if" => Ok(String::new()),
            _ => self.run(&args[0]),
        })
    }

    /// `$(shell,…)`: line ends inside become spaces, those at the end vanish.
    fn run(&mut self, command: &str) -> Expanded {
        let Some(shell) = self.shell else {
            return Err(format!(
                "$(shell,{command}): running commands is not allowed here"
            ));
        };
        let output = shell(command).map_err(|error| format!("$(shell,{command}): {error}"))?;
        self.count(output.len())?;
        Ok(output
            .trim_end_matches(['\n', '\r'])
            .replace("\r\n", " ")
            .replace('\n', " "))
    }

    fn count(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            return Err(format!(
                "the macros of the files expand to more than {MAX_BYTES} bytes"
            ));
        }
        Ok(())
    }
}

/// Where the parenthesis that was opened before `text` closes.
pub(crate) fn closing(text: &str) -> Option<usize> {
    let mut open = 0usize;
    for (at, c) in text.bytes().enumerate() {
        match c {
            b'(' => open += 1,
            b')' if open == 0 => return Some(at),
            b')' => open -= 1,
            _ => {}
        }
    }
    None
}

/// Splits at the commas outside parentheses; blanks belong to the arguments.
fn arguments(text: &str) -> Vec<&str> {
    let (mut open, mut start, mut parts) = (0usize, 0, Vec::new());
    for (at, c) in text.bytes().enumerate() {
        match c {
            b'(' => open += 1,
            b')' => open = open.saturating_sub(1),
            b',' if open == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: ExpansionPlace<'static> = ExpansionPlace {
        file: "Kconfig",
        line: 7,
    };

    fn env(name: &str) -> Option<String> {
        (name == "HOME").then(|| "/home".to_owned())
    }

    fn echo(command: &str) -> io::Result<String> {
        Ok(format!("{command}\nend\n\n"))
    }

    fn all(text: &str) -> Expanded {
        let mut macros = Macros::new(&env, Some(&echo));
        macros
            .assign("A", Assign::Recursive, "[$(B)]", HERE)
            .unwrap();
        macros
            .assign("B", Assign::Simple, "b$(lineno)", HERE)
            .unwrap();
        macros.assign("B", Assign::Append, "$(HOME)", HERE).unwrap();
        macros
            .assign("swap", Assign::Recursive, "$(2)-$(1)$(3)", HERE)
            .unwrap();
        macros
            .assign("loop", Assign::Recursive, "$(loop)", HERE)
            .unwrap();
        macros
            .assign("deep", Assign::Recursive, "$(deep,$(1)x)", HERE)
            .unwrap();
        macros.expand(text, HERE)
    }

    #[test]
    fn references_expand_as_the_kernel_documents() {
        for (text, expected) in [
            ("x$(A)y", "x[b7 /home]y"),
            ("$(swap,a, b)", " b-a"),
            ("$(swap,$(swap,1,2),(3,4))", "(3,4)-2-1"),
            ("$(shell,echo a,b)", ""),
            ("$(shell,a)", "a end"),
            ("$(filename):$(lineno)", "Kconfig:7"),
            ("$(nothing)", ""),
            ("$ $x", "$ $x"),
            ("$(HO$(swap,E,M))", ""),
        ] {
            let got = all(text);
            if expected.is_empty() && text.contains("a,b") {
                assert!(got.unwrap_err().contains("takes 1 arguments"), "{text}");
            } else {
                assert_eq!(got.as_deref(), Ok(expected), "{text}");
            }
        }
    }

    #[test]
    fn what_never_ends_is_refused() {
        assert!(all("$(loop)").unwrap_err().contains("uses itself"));
        assert!(all("$(deep,)").unwrap_err().contains("deeper"));
        assert!(all("$(A").unwrap_err().contains("without"));
        assert!(all(&"$(".repeat(10_000)).is_err());
        let nested = format!("{}{}", "$(".repeat(10_000), ")".repeat(10_000));
        assert!(all(&nested).unwrap_err().contains("deeper"));
    }

    #[test]
    fn what_doubles_again_and_again_is_refused() {
        let mut macros = Macros::new(&env, None);
        macros.assign("v0", Assign::Recursive, "", HERE).unwrap();
        for n in 1..60 {
            let twice = format!("$(v{})$(v{})", n - 1, n - 1);
            macros
                .assign(&format!("v{n}"), Assign::Recursive, &twice, HERE)
                .unwrap();
        }
        assert!(
            macros
                .expand("$(v59)", HERE)
                .unwrap_err()
                .contains("more than")
        );
    }
}
