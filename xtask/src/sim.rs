//! `cargo xtask sim`: runs the simulator of `mainspring-testkit`.
//!
//! `--seed N` repeats one run, `--seeds COUNT` tries that many, `--nodes` is for worlds of several
//! servers; the simulator owns the defaults.
//! It runs in the dev profile, which keeps assertions and overflow checks on.

use anyhow::{Context, Result, bail};

use crate::cargo;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    check(arguments)?;
    let mut command = cargo::command();
    command.args(["run", "--locked", "-p", "mainspring-testkit", "--bin", "sim", "--"]);
    cargo::run_command(command.args(arguments))
}

fn check(arguments: &[String]) -> Result<()> {
    let numbered: Vec<&String> = arguments.iter().filter(|flag| *flag != "--nodes").collect();
    for pair in numbered.chunks(2) {
        let flag = pair[0].as_str();
        if !matches!(flag, "--seed" | "--seeds") {
            bail!("unexpected argument `{flag}`; sim takes --seed N, --seeds COUNT and --nodes");
        }
        let value = pair.get(1).with_context(|| format!("{flag} needs a number"))?;
        value.parse::<u64>().with_context(|| format!("{flag} needs a number, not `{value}`"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    fn accepts(arguments: &[&str]) -> bool {
        check(&arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).is_ok()
    }

    #[test]
    fn only_seeds_with_numbers_are_accepted() {
        assert!(accepts(&[]));
        assert!(accepts(&["--seed", "18446744073709551615"]));
        assert!(accepts(&["--seed", "7", "--seeds", "100"]));
        assert!(accepts(&["--nodes", "--seed", "7"]));
        assert!(!accepts(&["--seed"]));
        assert!(!accepts(&["--seed", "x"]));
        assert!(!accepts(&["--speed", "1"]));
    }
}
