//! fio's job files: read, checked, resolved, written again.
