//! Asks the linker for packed relative relocations (`DT_RELR`), which make the binary 2.2 MB smaller.
//!
//! glibc reads them since 2.36 (2022), so only a binary for this very machine gets them, and only if its glibc does.

use std::{env, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name, value: &str| env::var(name).is_ok_and(|it| it == value);
    let is_native = env::var("TARGET") == env::var("HOST");
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is_native && is_glibc && glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the version of this machine's glibc, or `None` if `getconf` does not tell it.
#[expect(clippy::disallowed_methods, reason = "`os` is not there yet")]
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
