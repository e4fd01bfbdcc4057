//! What a store must do.
