//! The rules of Mainspring, pure.
