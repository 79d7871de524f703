//! The tables of programs; the doc of each says what it lists.

use crate::text::{WordList, WordTable};

/// Programs that run another program, or text as commands.
pub const WRAPPERS: WordList = WordList(
    "at batch bwrap busybox capsh catchsegv chpst chroot chrt command coproc crontab dbus-run-session direnv doas
     dtach entr env envdir expect fakeroot faketime firejail flock gdb hyperfine ionice ld.so lldb ltrace mosh newgrp
     nice nix-shell nohup nsenter numactl parallel perf pkexec proot rlwrap rr runcon runuser screen script setarch
     setpriv setsid setuidgid sg socat softlimit ssh sshpass start-stop-daemon stdbuf strace su sudo systemd-run
     taskset time timeout tmux toybox unbuffer unshare valgrind watch xargs xvfb-run zmx",
);

/// Builtins of the shell that rules do not allow: they change the shell, or run their arguments as code.
pub const BUILTINS: WordList = WordList(
    ". alias bg bind break builtin caller compgen complete compopt continue declare dirs disown enable eval exec exit
     export fc fg getopts hash history jobs let local logout mapfile popd pushd read readarray readonly return set
     shift shopt source suspend times trap typeset ulimit umask unalias unset wait",
);

/// Shells.
pub const SHELLS: WordList =
    WordList("ash bash csh dash elvish fish ksh mksh nu oil osh posh pwsh rbash sh tcsh xonsh yash zsh");

/// Interpreters, without their versions.
pub const INTERPRETERS: WordList = WordList(
    "bun deno elixir expect guile ipython jshell julia lua luajit node nodejs osascript perl php pypy pypy3 python
     python2 python3 r racket rscript ruby scala tclsh ts-node tsx wish",
);

/// Options that run a program, load code or write a file, by what a command begins with. One letter after a single dash is
/// looked for in bundles of letters too; a long one in its abbreviations.
pub const OPTIONS: WordTable = WordTable(include_str!("../../../assets/programs/options.txt"));

/// Programs of the same options.
pub const SAME: WordTable = WordTable(include_str!("../../../assets/programs/same.txt"));

/// Programs whose second word says what they do.
pub const SECOND: WordList = WordList(
    "apt apt-get aws az brew bun bundle bunx cabal cargo composer conda dart deno dnf docker dotnet flutter flyctl
     gcloud gem gh git glab go gradle gradlew helm heroku hg jj just kubectl lerna make mamba mix mvn mvnw nix nox
     npm npx nx openssl pip pip3 pipenv pipx pnpm pnpx podman poetry pre-commit rake rustup stack svn swift systemctl
     task terraform tofu tox turbo uv uvx vercel yarn zig",
);

/// Programs whose third word says what they do after one of these second words; `*`: after any.
pub const THIRD: WordTable = WordTable(include_str!("../../../assets/programs/third.txt"));

/// Programs that a rule of one word would give everything to: what they do stands in their arguments alone.
pub const UNBOUND: WordList = WordList("chmod chown dd ln mv rm rmdir shred tee truncate unlink");

/// Programs whose arguments name servers.
pub const REACHING: WordList = WordList(
    "curl dig ftp host http https nc ncat netcat nslookup ping ping6 rsync scp sftp ssh telnet traceroute wget whois
     xh",
);
