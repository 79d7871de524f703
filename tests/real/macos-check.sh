#!/bin/sh
# Type-checks sheaf and its tests for macOS, on any system: `tests/real/macos-check.sh [check --features keyring]`.
#
# Nothing is linked, so the C compiler is a script that writes empty files. The standard library for that system is the one of
# `rustup target add aarch64-apple-darwin`; where it is missing, its sources (`rustup component add rust-src`) are checked, too.
set -eu
cd "$(dirname "$0")/../.."

target=aarch64-apple-darwin
mkdir -p "${CARGO_TARGET_DIR:-target}/macos-check"
tools=$(cd "${CARGO_TARGET_DIR:-target}/macos-check" && pwd)

cat >"$tools/compile" <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" != -o ] || : >"$2"
    shift
done
END
cat >"$tools/archive" <<'END'
#!/bin/sh
for file; do
    case $file in *.a) printf '!<arch>\n' >"$file" ;; esac
done
END
chmod +x "$tools/compile" "$tools/archive"
export CC_aarch64_apple_darwin="$tools/compile" CXX_aarch64_apple_darwin="$tools/compile"
export AR_aarch64_apple_darwin="$tools/archive" SDKROOT="$tools"

std=
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
    # An option of nightly toolchains; this lets others take it.
    export RUSTC_BOOTSTRAP=1
    std=-Zbuild-std
fi
[ $# -gt 0 ] || set -- check
cargo "$@" --target "$target" --all-targets $std
