//! `${VARIABLES}`, `$keywords` and the arithmetic fio does with them.
//!
//! As fio 3.33 does it in job files (not on the command line): variables
//! first; then keywords; and only where a keyword stood, the whole value is
//! given to `bc`, whose integer arithmetic is done here.

use super::source::{Keyword, Sources};

/// An expanded line and what is doubtful about it.
pub struct Expanded {
    pub text: String,
    /// Variables that are not set.
    pub unset: Vec<String>,
    /// What became of a value with a keyword and an operator in it.
    pub arithmetic: Option<Arithmetic>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// It was computed.
    Done,
    /// It has operators but is no arithmetic.
    Impossible,
}

/// Expands one line of a job file. `None` when it grows beyond `limit` bytes.
pub fn expand(line: &str, limit: usize, sources: &dyn Sources) -> Option<Expanded> {
    let mut unset = Vec::new();
    let text = variables(line, limit, sources, &mut unset)?;
    let (text, replaced) = keywords(text, limit, sources)?;
    let (text, arithmetic) = if replaced {
        compute(text)
    } else {
        (text, None)
    };
    Some(Expanded {
        text,
        unset,
        arithmetic,
    })
}

fn variables(
    line: &str,
    limit: usize,
    sources: &dyn Sources,
    unset: &mut Vec<String>,
) -> Option<String> {
    let mut text = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start + 2..].find('}') else {
            break;
        };
        text.push_str(&rest[..start]);
        let name = &rest[start + 2..start + 2 + length];
        match sources.variable(name) {
            Some(value) => text.push_str(&value),
            None => unset.push(name.to_owned()),
        }
        rest = &rest[start + 2 + length + 1..];
        if text.len() > limit {
            return None;
        }
    }
    text.push_str(rest);
    (text.len() <= limit).then_some(text)
}

fn keywords(mut text: String, limit: usize, sources: &dyn Sources) -> Option<(String, bool)> {
    let mut replaced = false;
    for (word, keyword) in Keyword::ALL {
        if !text.contains(word) {
            continue;
        }
        if let Some(value) = sources.keyword(keyword) {
            text = text.replace(word, &value.to_string());
            replaced = true;
        }
    }
    (text.len() <= limit).then_some((text, replaced))
}

/// Computes the value of a line in which a keyword was replaced.
fn compute(line: String) -> (String, Option<Arithmetic>) {
    let Some((name, value)) = line.split_once('=') else {
        return (line, None);
    };
    let wanted = line.contains(['+', '-', '*', '/']) && !line.contains('\'');
    // Longer ones fio leaves alone.
    if !wanted || line.len() >= 128 || value.len() > 100 {
        return (line, None);
    }
    match evaluate(value) {
        Some(result) => (format!("{name}={result}"), Some(Arithmetic::Done)),
        None => (line, Some(Arithmetic::Impossible)),
    }
}

/// The value of an expression in whole numbers, with bc's rules: `^` binds
/// tightest and to the right, division cuts off, `%` is the remainder.
pub fn evaluate(text: &str) -> Option<i128> {
    let mut parser = Expression {
        rest: text.trim().as_bytes(),
        depth: 0,
    };
    let value = parser.sum()?;
    parser.rest.is_empty().then_some(value)
}

struct Expression<'t> {
    rest: &'t [u8],
    depth: u8,
}

impl Expression<'_> {
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn take(&mut self, wanted: &[u8]) -> Option<u8> {
        let byte = self.peek().filter(|byte| wanted.contains(byte))?;
        self.rest = &self.rest[1..];
        Some(byte)
    }

    fn sum(&mut self) -> Option<i128> {
        let mut value = self.product()?;
        while let Some(operator) = self.take(b"+-") {
            let right = self.product()?;
            value = match operator {
                b'+' => value.checked_add(right)?,
                _ => value.checked_sub(right)?,
            };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<i128> {
        let mut value = self.power()?;
        while let Some(operator) = self.take(b"*/%") {
            let right = self.power()?;
            value = match operator {
                b'*' => value.checked_mul(right)?,
                b'/' => value.checked_div(right)?,
                _ => value.checked_rem(right)?,
            };
        }
        Some(value)
    }

    fn power(&mut self) -> Option<i128> {
        // Depth bounds the recursion of parentheses, signs and powers.
        self.depth += 1;
        if self.depth > 32 {
            return None;
        }
        let base = self.atom()?;
        let value = if self.take(b"^").is_some() {
            let exponent = u32::try_from(self.power()?).ok()?;
            base.checked_pow(exponent)
        } else {
            Some(base)
        };
        self.depth -= 1;
        value
    }

    fn atom(&mut self) -> Option<i128> {
        if self.take(b"(").is_some() {
            let value = self.sum()?;
            self.take(b")")?;
            return Some(value);
        }
        if self.take(b"-").is_some() {
            return self.power()?.checked_neg();
        }
        self.peek()?;
        let digits = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        std::str::from_utf8(number).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    #[test]
    fn arithmetic_is_that_of_bc() {
        assert_eq!(evaluate("2*3+4"), Some(10));
        assert_eq!(evaluate("4096*(1+1)^2%7"), Some(4));
        assert_eq!(evaluate("7/2"), Some(3));
        assert_eq!(evaluate("2^3^2"), Some(512));
        assert_eq!(evaluate("-2 + 5"), Some(3));
        assert_eq!(evaluate("8k*2"), None);
        assert_eq!(evaluate("1/0"), None);
        assert_eq!(evaluate(""), None);
        assert_eq!(evaluate(&"(".repeat(1000)), None);
        assert_eq!(evaluate("9^99999999"), None);
    }
}
