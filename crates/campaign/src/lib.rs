//! From a definition to a plan and its runs. Today: the quick series ([`quick`]).
