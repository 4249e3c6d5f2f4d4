//! From files to nodes: the statements of the language.

use crate::error::{Error, ErrorKind, Position, Warning, WarningKind};
use crate::expr::ExprId;
use crate::files::KconfigSource;
use crate::lexer::{LineReader, LogicalLine, Token, TokenKind};
use crate::limits::{MAX_BYTES, MAX_FILES, MAX_NESTING, MAX_SOURCE_DEPTH};
use crate::macros::Macros;
use crate::tree::{Choice, ChoiceId, Item, NodeId, Prompt, SymbolKind, Tree};

mod attributes;
mod expression;

pub(crate) use expression::condition;

/// The words that begin a statement.
const STATEMENTS: &[&str] = &[
    "config",
    "menuconfig",
    "choice",
    "endchoice",
    "comment",
    "menu",
    "endmenu",
    "if",
    "endif",
    "source",
    "rsource",
    "osource",
    "orsource",
    "mainmenu",
];

/// The words that begin an attribute of an entry.
const ATTRIBUTES: &[&str] = &[
    "bool",
    "tristate",
    "string",
    "int",
    "hex",
    "def_bool",
    "def_tristate",
    "def_string",
    "def_int",
    "def_hex",
    "prompt",
    "default",
    "depends",
    "select",
    "imply",
    "range",
    "visible",
    "help",
    "---help---",
    "option",
    "optional",
    "modules",
    "transitional",
];

/// A line cut into tokens, and how many of them have been read.
struct Statement {
    line: LogicalLine,
    tokens: Vec<Token>,
    next: usize,
}

impl Statement {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn take_operator(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is_operator(text));
        self.next += usize::from(found);
        found
    }

    fn take_keyword(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is_keyword(text));
        self.next += usize::from(found);
        found
    }

    /// The word that began the line.
    fn keyword(&self) -> &str {
        &self.tokens[0].text
    }

    /// Where the line's first word stands.
    fn start(&self) -> Position {
        self.line.position(self.tokens[0].offset)
    }

    /// Where the next token stands, or the end of the line.
    fn here(&self) -> Position {
        let end = self.line.text.trim_end().len();
        self.line
            .position(self.peek().map_or(end, |token| token.offset))
    }

    /// Says that something else was expected here.
    fn expected(&self, what: &str) -> Error {
        let found = match self.peek() {
            Some(token) => token.shown(),
            None => "the end of the line".to_owned(),
        };
        Error::syntax(self.here(), format!("expected {what}, found {found}"))
    }

    fn end(&self) -> Result<(), Error> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the line")),
        }
    }

    fn text(&mut self, what: &str) -> Result<String, Error> {
        match self.peek() {
            Some(token) if token.kind == TokenKind::Quoted => {
                let text = token.text.clone();
                self.next += 1;
                Ok(text)
            }
            _ => Err(self.expected(&format!("{what} in quotes"))),
        }
    }

    fn name(&mut self, what: &str) -> Result<String, Error> {
        match self.peek() {
            Some(token) if matches!(token.kind, TokenKind::Word | TokenKind::Expanded) => {
                let name = token.text.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }
}

/// A file being read, and the line that was read too far.
struct OpenSource {
    name: String,
    reader: LineReader,
    pending: Option<Statement>,
}

pub(crate) struct Parser<'a> {
    pub(crate) tree: Tree,
    files: &'a dyn KconfigSource,
    macros: Macros<'a>,
    /// The files that are being read, each with the place that sources it.
    open: Vec<(String, Option<Position>)>,
    nesting: usize,
    bytes: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(prefix: &str, files: &'a dyn KconfigSource, macros: Macros<'a>) -> Self {
        Self {
            tree: Tree::empty(prefix),
            files,
            macros,
            open: Vec::new(),
            nesting: 0,
            bytes: 0,
        }
    }

    /// Reads the file that holds the whole tree.
    pub(crate) fn run(mut self, name: &str) -> Result<Tree, Error> {
        let start = Position {
            file: name.into(),
            line: 1,
            column: 1,
        };
        let root = self.tree.add_node(Item::Menu, start, NodeId(0));
        self.tree.nodes[root.index()].prompt = Some(Prompt {
            text: "Main menu".to_owned(),
            condition: crate::expr::Arena::Y,
        });
        self.file(name, None, root)?;
        self.tree.messages = std::mem::take(&mut self.macros.messages);
        Ok(self.tree)
    }

    fn warn(&mut self, position: Position, message: impl Into<String>) {
        self.tree.warnings.push(Warning {
            kind: WarningKind::Tree,
            position: Some(position),
            message: message.into(),
        });
    }

    fn file(&mut self, name: &str, from: Option<Position>, parent: NodeId) -> Result<(), Error> {
        let place = || {
            from.clone().unwrap_or(Position {
                file: name.into(),
                line: 1,
                column: 1,
            })
        };
        let limit = |message: String| Err(Error::new(ErrorKind::Limit, place(), message));
        if self.open.iter().any(|(open, _)| open == name) {
            let chain = self
                .open
                .iter()
                .skip_while(|(open, _)| open != name)
                .skip(1);
            let mut chain: Vec<String> = chain
                .filter_map(|(file, from)| Some(format!("{} sources {file}", from.as_ref()?)))
                .collect();
            chain.push(format!("{} sources {name}", place()));
            let error = Error::new(
                ErrorKind::SourceLoop,
                place(),
                format!("{name} sources itself"),
            );
            return Err(error.with_chain(chain));
        }
        if self.open.len() >= MAX_SOURCE_DEPTH {
            return limit(format!(
                "files source each other deeper than {MAX_SOURCE_DEPTH}"
            ));
        }
        if self.tree.files.len() >= MAX_FILES {
            return limit(format!("more than {MAX_FILES} files are sourced"));
        }
        let text = self.files.read(name).map_err(|error| {
            Error::new(
                ErrorKind::Source,
                place(),
                format!("{name} cannot be read: {error}"),
            )
        })?;
        self.bytes += text.len();
        if self.bytes > MAX_BYTES {
            return limit(format!("the files hold more than {MAX_BYTES} bytes"));
        }
        self.tree.files.push(name.to_owned());
        self.open.push((name.to_owned(), from));
        let mut input = OpenSource {
            name: name.to_owned(),
            reader: LineReader::new(name, text),
            pending: None,
        };
        self.block(&mut input, parent, None)?;
        self.open.pop();
        Ok(())
    }

    /// The next line that is neither blank nor an assignment.
    fn statement(&mut self, input: &mut OpenSource) -> Result<Option<Statement>, Error> {
        if let Some(statement) = input.pending.take() {
            return Ok(Some(statement));
        }
        while let Some(line) = input.reader.next() {
            if line.is_blank() {
                continue;
            }
            let tokens = match self.assign(&line)? {
                true => Vec::new(),
                false => line.tokens(&mut self.macros)?,
            };
            for message in std::mem::take(&mut self.macros.warnings) {
                self.warn(line.position(0), message);
            }
            if !tokens.is_empty() {
                return Ok(Some(Statement {
                    line,
                    tokens,
                    next: 1,
                }));
            }
        }
        Ok(None)
    }

    /// Carries out `name = value`; says whether the line was one.
    fn assign(&mut self, line: &LogicalLine) -> Result<bool, Error> {
        let Some(assignment) = line.assignment() else {
            return Ok(false);
        };
        let fault = |message| Error::new(ErrorKind::Macro, line.position(0), message);
        let place = line.place();
        let name = self.macros.expand(assignment.name, place).map_err(fault)?;
        let result = self
            .macros
            .assign(&name, assignment.how, assignment.value, place);
        result.map_err(fault)?;
        Ok(true)
    }

    /// Statements up to the word that ends them, or the end of the file.
    fn block(
        &mut self,
        input: &mut OpenSource,
        parent: NodeId,
        end: Option<(&str, &Position)>,
    ) -> Result<(), Error> {
        while let Some(mut statement) = self.statement(input)? {
            let keyword = match statement.tokens[0].kind {
                TokenKind::Word => statement.keyword().to_owned(),
                _ => {
                    statement.next = 0;
                    return Err(statement.expected("the first word of a statement"));
                }
            };
            match (keyword.as_str(), end) {
                (word, Some((wanted, _))) if word == wanted => return statement.end(),
                ("config" | "menuconfig", _) => self.config(input, statement, parent)?,
                ("menu", _) => self.menu(input, statement, parent)?,
                ("choice", _) => self.choice(input, statement, parent)?,
                ("if", _) => self.conditional(input, statement, parent)?,
                ("comment", _) => self.comment(input, statement, parent)?,
                ("source" | "rsource" | "osource" | "orsource", _) => {
                    self.source(input, statement, parent)?;
                }
                ("mainmenu", _) => self.mainmenu(statement)?,
                ("endmenu" | "endif" | "endchoice", _) => return Err(stray_end(&statement, end)),
                _ => return Err(unknown(&statement)),
            }
        }
        match end {
            None => Ok(()),
            Some((wanted, opened)) => {
                let what = wanted.strip_prefix("end").unwrap_or(wanted);
                let message = format!(
                    "the {what} of line {} has no {wanted} before the end of the file",
                    opened.line
                );
                Err(Error::syntax(input.reader.position(), message))
            }
        }
    }

    /// A new node, last below its parent.
    fn node(&mut self, item: Item, position: Position, parent: NodeId) -> NodeId {
        let id = self.tree.add_node(item, position, parent);
        self.tree.nodes[parent.index()].children.push(id);
        id
    }

    /// What stands between a statement and its `end…`.
    fn nested(
        &mut self,
        input: &mut OpenSource,
        node: NodeId,
        end: &str,
        opened: &Position,
    ) -> Result<(), Error> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            let message = format!("menus, choices and ifs nest deeper than {MAX_NESTING}");
            return Err(Error::new(ErrorKind::Limit, opened.clone(), message));
        }
        self.block(input, node, Some((end, opened)))?;
        self.nesting -= 1;
        Ok(())
    }

    fn config(
        &mut self,
        input: &mut OpenSource,
        mut s: Statement,
        parent: NodeId,
    ) -> Result<(), Error> {
        let name = s.name("the name of the symbol")?;
        s.end()?;
        if matches!(name.as_str(), "n" | "m" | "y") {
            return Err(Error::syntax(
                s.start(),
                format!("{name} is a value, not a symbol"),
            ));
        }
        let symbol = self.tree.symbol_named(&name);
        let node = self.node(Item::Symbol(symbol), s.start(), parent);
        if self.tree.symbols[symbol.index()].nodes.is_empty() {
            self.tree.defined.push(symbol);
        }
        self.tree.symbols[symbol.index()].nodes.push(node);
        self.tree.nodes[node.index()].is_menuconfig = s.keyword() == "menuconfig";
        self.attributes(input, node)
    }

    fn menu(
        &mut self,
        input: &mut OpenSource,
        mut s: Statement,
        parent: NodeId,
    ) -> Result<(), Error> {
        let text = s.text("the title of the menu")?;
        s.end()?;
        let opened = s.start();
        let node = self.node(Item::Menu, opened.clone(), parent);
        self.set_prompt(node, text, crate::expr::Arena::Y);
        self.attributes(input, node)?;
        self.nested(input, node, "endmenu", &opened)
    }

    fn choice(
        &mut self,
        input: &mut OpenSource,
        mut s: Statement,
        parent: NodeId,
    ) -> Result<(), Error> {
        let name = s
            .peek()
            .is_some()
            .then(|| s.name("the name of the choice"))
            .transpose()?;
        s.end()?;
        let known = name.as_deref().and_then(|name| self.tree.find_choice(name));
        let choice = known.unwrap_or_else(|| {
            self.tree.choices.push(Choice {
                name,
                kind: SymbolKind::Unknown,
                optional: false,
                nodes: Vec::new(),
                members: Vec::new(),
                defaults: Vec::new(),
            });
            let id = self.tree.choices.len() - 1;
            ChoiceId(u32::try_from(id).expect("the limit on input keeps ids in 32 bits"))
        });
        let opened = s.start();
        let node = self.node(Item::Choice(choice), opened.clone(), parent);
        self.tree.choices[choice.index()].nodes.push(node);
        self.attributes(input, node)?;
        self.nested(input, node, "endchoice", &opened)
    }

    fn conditional(
        &mut self,
        input: &mut OpenSource,
        mut s: Statement,
        parent: NodeId,
    ) -> Result<(), Error> {
        let condition = self.expression(&mut s, true)?;
        s.end()?;
        let opened = s.start();
        let node = self.node(Item::If, opened.clone(), parent);
        self.tree.nodes[node.index()].depends = condition;
        self.nested(input, node, "endif", &opened)
    }

    fn comment(
        &mut self,
        input: &mut OpenSource,
        mut s: Statement,
        parent: NodeId,
    ) -> Result<(), Error> {
        let text = s.text("the comment")?;
        s.end()?;
        let node = self.node(Item::Comment, s.start(), parent);
        self.set_prompt(node, text, crate::expr::Arena::Y);
        self.attributes(input, node)
    }

    fn mainmenu(&mut self, mut s: Statement) -> Result<(), Error> {
        let text = s.text("the title of the main menu")?;
        s.end()?;
        let root = self.tree.root();
        self.tree.nodes[root.index()].prompt = Some(Prompt {
            text,
            condition: crate::expr::Arena::Y,
        });
        Ok(())
    }

    fn set_prompt(&mut self, node: NodeId, text: String, condition: ExprId) {
        self.tree.nodes[node.index()].prompt = Some(Prompt { text, condition });
    }

    fn source(
        &mut self,
        input: &OpenSource,
        mut s: Statement,
        parent: NodeId,
    ) -> Result<(), Error> {
        let written = s.text("the name of the file")?;
        s.end()?;
        let relative = matches!(s.keyword(), "rsource" | "orsource");
        let optional = matches!(s.keyword(), "osource" | "orsource");
        let pattern = match input.name.rsplit_once('/') {
            Some((folder, _)) if relative => format!("{folder}/{written}"),
            _ => written,
        };
        let found = self.files.glob(&pattern);
        if found.is_empty() && !optional {
            let folder = pattern
                .rsplit_once('/')
                .map_or("*".to_owned(), |(folder, _)| format!("{folder}/*"));
            let there = self.files.glob(&folder);
            let names: Vec<&str> = there.iter().map(String::as_str).collect();
            let message = format!("no file is called {pattern} (osource would allow that)");
            let error = Error::new(
                ErrorKind::Source,
                s.line.position(s.tokens[1].offset),
                message,
            );
            return Err(error.near(&pattern, &names));
        }
        for name in found {
            self.file(&name, Some(s.start()), parent)?;
        }
        Ok(())
    }
}

/// An `end…` that closes nothing, or something else.
fn stray_end(statement: &Statement, open: Option<(&str, &Position)>) -> Error {
    let word = statement.keyword();
    let message = match open {
        None => format!("{word} closes nothing that this file has opened"),
        Some((wanted, opened)) => {
            let what = wanted.strip_prefix("end").unwrap_or(wanted);
            format!(
                "{word} where the {what} of line {} still needs its {wanted}",
                opened.line
            )
        }
    };
    Error::syntax(statement.start(), message)
}

/// A first word that the language does not have, or has elsewhere.
fn unknown(statement: &Statement) -> Error {
    let word = statement.keyword();
    if ATTRIBUTES.contains(&word) {
        let message = format!("'{word}' must follow the entry that it belongs to");
        return Error::syntax(statement.start(), message);
    }
    let known: Vec<&str> = STATEMENTS.iter().chain(ATTRIBUTES).copied().collect();
    Error::syntax(
        statement.start(),
        format!("'{word}' is no word of the language"),
    )
    .near(word, &known)
}
