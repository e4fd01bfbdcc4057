//! The `mainspring` command.

fn main() {}
