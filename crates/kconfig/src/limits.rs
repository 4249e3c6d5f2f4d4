//! How large and how deep a tree may be. The Linux kernel's, the largest in
//! use, has about 1,700 files, 5 MB, and nests a dozen levels.

/// Bytes in all files together, and of what macros expand to.
pub const MAX_BYTES: usize = 128 << 20;
/// Files read, each `source` counted.
pub const MAX_FILES: usize = 50_000;
/// Files that source each other.
pub const MAX_SOURCE_DEPTH: usize = 64;
/// Menus, choices and ifs inside each other, over all files.
pub const MAX_NESTING: usize = 128;
/// Parentheses and `!` inside each other in one expression.
pub const MAX_EXPR_DEPTH: usize = 128;
/// Macros that use each other; the kernel stops at 1,000, on a larger stack.
pub const MAX_MACRO_DEPTH: usize = 100;
/// References expanded, in all files together.
pub const MAX_EXPANSIONS: usize = 1_000_000;
/// Bytes that one reference expands to.
pub const MAX_EXPANSION_BYTES: usize = 1 << 20;
/// Entries nested by depending on the one before; deeper ones stay where they are.
pub const MAX_IMPLICIT_DEPTH: usize = 64;
/// Parts of a condition that are searched for the entry before.
pub const MAX_IMPLICIT_PARTS: usize = 1_000;
/// Levels of an expression that are written out in a message.
pub const MAX_SHOWN_DEPTH: usize = 256;
