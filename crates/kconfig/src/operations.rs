//! What `make …config` does in a kernel tree. Each starts from the values that
//! the [`Config`] holds or sets them all.

use crate::config::Config;
use crate::expr::Tri;
use crate::tree::{SymbolId, SymbolKind};

impl Config {
    /// `alldefconfig`: everything at its default.
    pub fn all_default(&mut self) {
        self.reset();
    }

    /// `allyesconfig`: as much as possible `y`.
    pub fn all_yes(&mut self) {
        self.reset();
        let tree = std::sync::Arc::clone(self.tree());
        for &id in tree.symbols() {
            let symbol = tree.symbol(id);
            // Members of a choice that is itself at most m are all m.
            let value = match (symbol.kind, symbol.choice) {
                (SymbolKind::Tristate, Some(_)) => "m",
                (SymbolKind::Bool, Some(_)) => continue,
                (SymbolKind::Bool | SymbolKind::Tristate, None) => "y",
                _ => continue,
            };
            self.take(id, value);
        }
        for id in tree.choices() {
            // A choice without members has no type and no mode.
            let _ = self.set_mode(id, Tri::Y);
        }
    }

    /// `allnoconfig`: as much as possible `n`.
    pub fn all_no(&mut self) {
        self.reset();
        let tree = std::sync::Arc::clone(self.tree());
        for &id in tree.symbols() {
            let symbol = tree.symbol(id);
            if symbol.kind.is_logical() {
                self.take(id, if symbol.allnoconfig_y { "y" } else { "n" });
            }
        }
    }

    /// `randconfig`: every bool, tristate and choice at random, texts and
    /// numbers at their defaults. The same seed gives the same values.
    pub fn randomize(&mut self, seed: u64) {
        self.reset();
        let tree = std::sync::Arc::clone(self.tree());
        let mut numbers = SplitMix(seed);
        for &id in tree.symbols() {
            let symbol = tree.symbol(id);
            let values: &[&str] = match symbol.kind {
                SymbolKind::Bool => &["n", "y"],
                SymbolKind::Tristate => &["n", "m", "y"],
                _ => continue,
            };
            if symbol.choice.is_none() {
                self.take(id, numbers.one_of::<&str>(values));
            }
        }
        for id in tree.choices() {
            let modes = self.choice_assignable(id);
            if !modes.is_empty() {
                // One of the modes that the choice can have.
                let _ = self.set_mode(id, *numbers.one_of(&modes));
            }
            let members = &tree.choice(id).members;
            let can: Vec<SymbolId> = members
                .iter()
                .copied()
                .filter(|&member| tree.symbol(member).kind.is_logical())
                .filter(|&member| self.visibility(member) > Tri::N)
                .collect();
            match self.mode(id) {
                Tri::Y if !can.is_empty() => self.take(*numbers.one_of(&can), "y"),
                Tri::M => {
                    for member in can {
                        self.take(member, numbers.one_of::<&str>(&["n", "m"]));
                    }
                }
                _ => {}
            }
        }
    }

    /// `listnewconfig`: the symbols that the user could set and has not.
    #[must_use]
    pub fn new_symbols(&self) -> Vec<SymbolId> {
        let is_new = |id: &SymbolId| self.user_value(*id).is_none() && self.can_change(*id);
        self.tree()
            .symbols()
            .iter()
            .copied()
            .filter(is_new)
            .collect()
    }

    /// Whether the user can give a symbol another value than it has.
    #[must_use]
    pub fn can_change(&self, id: SymbolId) -> bool {
        let symbol = self.tree().symbol(id);
        let free = symbol.choice.is_some()
            || matches!(
                symbol.kind,
                SymbolKind::String | SymbolKind::Int | SymbolKind::Hex
            );
        self.assignable(id).len() > 1 || free && self.visibility(id) > Tri::N
    }

    /// A symbol's line as `listnewconfig` shows it: `n` stands there as such.
    #[must_use]
    pub fn assignment(&self, id: SymbolId) -> String {
        let symbol = self.tree().symbol(id);
        match symbol.kind.is_logical() {
            true => format!("{}{}={}", self.tree().prefix(), symbol.name, self.text(id)),
            false => self.line(id).trim_end_matches('\n').to_owned(),
        }
    }

    /// Sets a value that the symbol's type has.
    fn take(&mut self, id: SymbolId, value: &str) {
        let taken = self.set(id, value);
        debug_assert!(taken.is_ok(), "the value was chosen by the type");
    }
}

/// Numbers that look random (splitmix64, Steele, Lea and Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn one_of<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        let at = self.next() % values.len() as u64;
        &values[usize::try_from(at).expect("smaller than a length")]
    }
}
