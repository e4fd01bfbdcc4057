//! The project tasks: `cargo xtask` lists them.

fn main() {}
