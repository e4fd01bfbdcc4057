//! Wire types of the native contract.
