//! Numbers that look random and are the same every time, and trees made of them.

use std::fmt::Write as _;

/// xorshift64*
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        let mut numbers = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            numbers.below(2);
        }
        numbers
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap() % end.max(1)
    }

    pub fn one_of<'v>(&mut self, values: &[&'v str]) -> &'v str {
        values[self.below(values.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// What a random tree has so far.
struct Maker<'n> {
    numbers: &'n mut Numbers,
    out: String,
    /// Logical symbols that later ones may refer to without a loop.
    logical: Vec<String>,
    /// Those that are members of choices: kconfiglib takes a second definition
    /// of one outside its choice for a loop.
    members: Vec<String>,
    texts: Vec<String>,
    numbered: Vec<String>,
    next: usize,
}

/// A tree of some twenty entries that uses most of the language.
pub fn tree(numbers: &mut Numbers) -> String {
    let mut maker = Maker {
        numbers,
        out: String::from("mainmenu \"Random\"\n\n"),
        logical: Vec::new(),
        members: Vec::new(),
        texts: Vec::new(),
        numbered: Vec::new(),
        next: 0,
    };
    if maker.numbers.chance(70) {
        let default = maker.numbers.one_of(&["y", "n"]);
        let _ = write!(
            maker.out,
            "config MODULES\n\tbool \"Modules\"\n\tdefault {default}\n\n"
        );
    }
    maker.block(0, 12);
    maker.out
}

impl Maker<'_> {
    fn line(&mut self, text: &str) {
        self.out.push('\t');
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn name(&mut self, letter: char) -> String {
        self.next += 1;
        format!("{letter}{}", self.next)
    }

    fn logical(&mut self) -> String {
        if self.logical.is_empty() || self.numbers.chance(5) {
            return self.numbers.one_of(&["y", "n", "m", "NOWHERE"]).to_owned();
        }
        let at = self.numbers.below(self.logical.len());
        self.logical[at].clone()
    }

    fn expr(&mut self, depth: usize) -> String {
        match self.numbers.below(if depth > 2 { 4 } else { 9 }) {
            0..=2 => self.logical(),
            3 => {
                let sign = self.numbers.one_of(&["=", "!=", "<", ">="]);
                if !self.numbered.is_empty() && self.numbers.chance(50) {
                    let at = self.numbers.below(self.numbered.len());
                    let to = self.numbers.one_of(&["3", "0x10", "7", "\"4\"", "abc"]);
                    return format!("{} {sign} {to}", self.numbered[at]);
                }
                if !self.texts.is_empty() && self.numbers.chance(50) {
                    let at = self.numbers.below(self.texts.len());
                    let to = self.numbers.one_of(&["\"a b\"", "\"\"", "3", "\"10\""]);
                    return format!("{} {sign} {to}", self.texts[at]);
                }
                let to = self.numbers.one_of(&["y", "n", "m"]);
                format!("{} {sign} {to}", self.logical())
            }
            4 => format!("!{}", self.logical()),
            5 => format!("!({})", self.expr(depth + 1)),
            6 => format!("({} || {})", self.expr(depth + 1), self.expr(depth + 1)),
            7 => format!("{} && {}", self.expr(depth + 1), self.expr(depth + 1)),
            _ => format!("{} || {}", self.expr(depth + 1), self.expr(depth + 1)),
        }
    }

    fn condition(&mut self) -> String {
        match self.numbers.chance(50) {
            true => format!(" if {}", self.expr(1)),
            false => String::new(),
        }
    }

    fn block(&mut self, depth: usize, entries: usize) {
        for _ in 0..entries {
            match self.numbers.below(if depth > 2 { 5 } else { 8 }) {
                0..=2 => self.symbol(),
                3 => self.value(),
                4 => self.comment(),
                5 => self.choice(),
                6 => {
                    let name = self.name('M');
                    let _ = writeln!(self.out, "menu \"Menu {name}\"");
                    self.depends(30);
                    if self.numbers.chance(30) {
                        let expr = self.expr(1);
                        self.line(&format!("visible if {expr}"));
                    }
                    self.block(depth + 1, 3);
                    self.out.push_str("endmenu\n\n");
                }
                _ => {
                    let expr = self.expr(0);
                    let _ = writeln!(self.out, "if {expr}");
                    self.block(depth + 1, 2);
                    self.out.push_str("endif\n\n");
                }
            }
        }
    }

    fn depends(&mut self, percent: usize) {
        if self.numbers.chance(percent) {
            let expr = self.expr(0);
            self.line(&format!("depends on {expr}"));
        }
    }

    fn comment(&mut self) {
        let name = self.name('C');
        let _ = writeln!(self.out, "comment \"Comment {name}\"");
        self.depends(60);
    }

    fn prompt(&mut self, kind: &str, name: &str, percent: usize) {
        if self.numbers.chance(percent) {
            let condition = if self.numbers.chance(20) {
                self.condition()
            } else {
                String::new()
            };
            self.line(&format!("{kind} \"Prompt {name}\"{condition}"));
        } else {
            self.line(kind);
        }
    }

    fn symbol(&mut self) {
        // Now and then a second definition of what is there already.
        let again = !self.logical.is_empty() && self.numbers.chance(10);
        let name = if again {
            self.logical()
        } else {
            self.name('S')
        };
        let word = self.numbers.one_of(&["config", "config", "menuconfig"]);
        if matches!(name.as_str(), "y" | "n" | "m" | "NOWHERE") || self.members.contains(&name) {
            return;
        }
        let _ = writeln!(self.out, "{word} {name}");
        let kind = self.numbers.one_of(&["bool", "tristate"]);
        self.prompt(kind, &name, 75);
        self.depends(40);
        for _ in 0..self.numbers.below(3) {
            let (value, condition) = (self.expr(1), self.condition());
            self.line(&format!("default {value}{condition}"));
        }
        for verb in ["select", "imply"] {
            if self.numbers.chance(20) {
                // Backwards may be a loop, forwards may be undefined.
                let target = match self.numbers.chance(20) {
                    true => self.logical(),
                    false => format!("S{}", self.next + 1 + self.numbers.below(4)),
                };
                // To select a member of a choice has no effect; whether it can be
                // part of a loop is seen differently.
                if !matches!(target.as_str(), "y" | "n" | "m") && !self.members.contains(&target) {
                    let condition = self.condition();
                    self.line(&format!("{verb} {target}{condition}"));
                }
            }
        }
        self.out.push('\n');
        self.logical.push(name);
    }

    fn value(&mut self) {
        let kind = self.numbers.one_of(&["int", "hex", "string"]);
        let name = self.name('V');
        let _ = writeln!(self.out, "config {name}");
        self.prompt(kind, &name, 75);
        self.depends(30);
        if kind != "string" {
            for _ in 0..self.numbers.below(3) {
                let (mut low, high) = (
                    self.numbers.one_of(&["0", "1", "5"]),
                    self.numbers.one_of(&["7", "40"]),
                );
                if !self.numbered.is_empty() && self.numbers.chance(20) {
                    low = "V1";
                }
                let condition = self.condition();
                self.line(&format!("range {low} {high}{condition}"));
            }
        }
        for _ in 0..self.numbers.below(3) {
            let mut value = match kind {
                "int" => self.numbers.one_of(&["3", "0", "99", "-5", "y"]).to_owned(),
                "hex" => self.numbers.one_of(&["0x3", "ff", "0x0", "zz"]).to_owned(),
                _ => self
                    .numbers
                    .one_of(&["\"a b\"", "\"q\\\"uote\"", "word", "\"10\""])
                    .to_owned(),
            };
            let from = if kind == "string" {
                &self.texts
            } else {
                &self.numbered
            };
            if !from.is_empty() && self.numbers.chance(25) {
                value = from[self.numbers.below(from.len())].clone();
            }
            let condition = self.condition();
            self.line(&format!("default {value}{condition}"));
        }
        self.out.push('\n');
        match kind {
            "string" => self.texts.push(name),
            _ => self.numbered.push(name),
        }
    }

    fn choice(&mut self) {
        let label = if self.numbers.chance(20) {
            format!(" {}", self.name('N'))
        } else {
            String::new()
        };
        let _ = writeln!(self.out, "choice{label}");
        let kind = self.numbers.one_of(&["bool", "tristate", "bool"]);
        self.prompt(kind, &format!("choice{}", self.next), 90);
        self.depends(30);
        if self.numbers.chance(25) {
            self.line("optional");
        }
        let members: Vec<String> = (0..1 + self.numbers.below(4))
            .map(|_| self.name('K'))
            .collect();
        for _ in 0..self.numbers.below(3) {
            let at = self.numbers.below(members.len());
            let condition = self.condition();
            self.line(&format!("default {}{condition}", members[at]));
        }
        self.out.push('\n');
        for name in &members {
            let _ = writeln!(self.out, "config {name}");
            let kind = if self.numbers.chance(80) {
                kind
            } else {
                "tristate"
            };
            self.prompt(kind, name, 95);
            self.depends(25);
            self.out.push('\n');
        }
        self.out.push_str("endchoice\n\n");
        self.members.extend(members.clone());
        self.logical.extend(members);
    }
}
