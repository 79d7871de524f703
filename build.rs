//! Arguments for the linker of the release binary, and what few ask for, packed.
//!
//! Packed relative relocations (`DT_RELR`) make it 2.2 MB smaller. glibc reads them since 2.36 (2022), so only a binary for this
//! very machine gets them, and only if its glibc does.
//!
//! Functions that a session runs are put beside each other (`assets/hot-functions.ld`): 10 MB less of the program is resident.

use std::{
    env,
    io::{self, Write as _},
    path::Path,
    process::Command,
};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    pack("openapi.json")?;
    pack("tour/tour.jsonl")?;
    let is = |name, value: &str| env::var(name).is_ok_and(|it| it == value);
    let is_native = env::var("TARGET") == env::var("HOST");
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is_native && is_glibc && glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // lld and the linker of GNU read such a script; others may not.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_usual_linker =
        env::var_os("RUSTC_LINKER").is_none() && !flags.contains("linker") && !flags.contains("fuse-ld");
    if is("PROFILE", "release") && is_glibc && is("CARGO_CFG_TARGET_ARCH", "x86_64") && is_usual_linker {
        let list = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("assets/hot-functions.ld");
        println!("cargo:rerun-if-changed={}", list.display());
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", list.display());
    }
    Ok(())
}

/// Packs a file of `assets` for the program, which unpacks it when somebody asks for it.
#[expect(clippy::disallowed_methods, reason = "`os` is not there yet")]
fn pack(name: &str) -> io::Result<()> {
    let folder = |variable| env::var_os(variable).unwrap_or_default();
    let source = Path::new(&folder("CARGO_MANIFEST_DIR")).join("assets").join(name);
    println!("cargo:rerun-if-changed={}", source.display());
    let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&std::fs::read(source)?)?;
    let name = name.replace('/', "-");
    std::fs::write(
        Path::new(&folder("OUT_DIR")).join(format!("{name}.deflate")),
        packer.finish()?,
    )
}

/// Returns the version of this machine's glibc, or `None` if `getconf` does not tell it.
#[expect(clippy::disallowed_methods, reason = "`os` is not there yet")]
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
