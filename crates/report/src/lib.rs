//! What people and programs read: documents, tables and comparisons of records.
