//! The binary: arguments go to [`sheaf::cli`], its exit code comes back.

fn main() -> std::process::ExitCode {
    sheaf::cli::run(std::env::args_os())
}
