//! The project's tasks, in plain Rust: `cargo xtask` prints the menu.
//!
//! Each task is one file; this one only routes. A task may run cargo and read the tree. It never
//! holds product logic: the simulator belongs to `mainspring-testkit`, the benchmark to
//! `mainspring-bench`.

mod cargo;
mod packages;

mod bench;
mod binaries;
mod bless;
mod coverage;
mod deny;
mod dist;
mod echo;
mod failures;
mod libtest;
mod limits;
mod npm;
mod postgres;
mod schemathesis;
mod sdks;
mod server;
mod sim;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

const MENU: &str = "\
usage: cargo xtask <task>

  fmt                             format every crate
  lint                            clippy with warnings as errors, then tidy
  tidy                            check crate arrows, licences, names, sizes, links
  test [--full]                   all that CI runs; --full takes the long way round
  coverage                        run the black-box tests only, show which requirements they cover
  conformance                     rewrite docs/conformance.md: which tests prove which requirement
  bless [package...]              rewrite the golden files from what the code does now
  limits                          rewrite only the tables of docs/limits.md
  sim [--seed N] [--seeds COUNT] [--nodes]
                                  run the simulator; one seed repeats one run
  schemathesis [--cases N] [--store NAME] [--seed N]
                                  generated requests against a server on each store
  sdks [--jobs N]                 the Python and TypeScript packages against a server on each store
  axe                             what the browser tests look at pages with, for a plain `cargo test`
  dist [--binary FILE] [--try]    an archive to install from, in dist/; built for release unless there is a file
  deny                            advisories, licences and sources of all dependencies, by cargo-deny
  bench [args]                    build for release and run `mainspring bench [args]`
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match cargo::enter_root().and_then(|()| run(&arguments)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<ExitCode> {
    let Some((task, rest)) = arguments.split_first() else {
        print!("{MENU}");
        return Ok(ExitCode::SUCCESS);
    };
    let done = match task.as_str() {
        "fmt" => no_arguments(rest).and_then(|()| cargo::run(&["fmt", "--all"])),
        "lint" => no_arguments(rest).and_then(|()| lint()),
        "tidy" => no_arguments(rest).and_then(|()| tidy::run()),
        "test" => return test::run(rest),
        "coverage" => no_arguments(rest).and_then(|()| coverage::run()),
        "conformance" => no_arguments(rest).and_then(|()| coverage::page::write()),
        "bless" => bless::run(rest),
        "limits" => no_arguments(rest).and_then(|()| bless::limits()),
        "sim" => sim::run(rest),
        "schemathesis" => schemathesis::run(rest),
        "sdks" => sdks::run(rest),
        "axe" => no_arguments(rest).and_then(|()| axe()),
        "dist" => dist::run(rest),
        "deny" => no_arguments(rest).and_then(|()| deny::run()),
        "bench" => bench::run(rest),
        "help" | "-h" | "--help" => {
            print!("{MENU}");
            Ok(())
        }
        unknown => bail!("there is no task `{unknown}`\n\n{MENU}"),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Both halves always run, so that one round shows everything there is to mend.
fn lint() -> Result<()> {
    let clippy = cargo::run(&cargo::CLIPPY);
    let tidy = tidy::run();
    clippy.and(tidy)
}

fn axe() -> Result<()> {
    println!("export {}={}", npm::AXE_PLACE, npm::axe()?.display());
    Ok(())
}

fn no_arguments(rest: &[String]) -> Result<()> {
    match rest.first() {
        None => Ok(()),
        Some(extra) => bail!("unexpected argument `{extra}`"),
    }
}
