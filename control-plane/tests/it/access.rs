//! Who may come in, changed by page and API: at once, on record, and by administrators only.

mod at_once;
mod rest;
mod roles;
