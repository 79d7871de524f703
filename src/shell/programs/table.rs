//! The tables of programs; the doc of each says what it lists.

use crate::text::{WordList, WordTable};

/// Programs that run another program, or text as commands.
pub const WRAPPERS: WordList = WordList(
    "aa-exec at atexec aws-vault batch bwrap busybox capsh catchsegv ccache chamber choom chpst chroot chronic chrt command
     concurrently coproc cpulimit crontab cross-env dbus-launch dbus-run-session direnv distcc doas dotenv doppler dtach entr
     env envchain envdir expect fakechroot fakeroot faketime firejail flock gdb grc hyperfine icecc ionice ksu ld.so lldb logsave
     ltrace mosh msgexec msgfilter multitime newgrp newuidmap nice nix-shell nodemon nohup nsenter numactl openvt parallel perf
     pexec pkexec prlimit proot proxychains proxychains4 ptrace rlwrap rr run-mailcap run-parts runcon runscript runuser sccache
     scl screen script sem setarch setlock setpriv setsid setuidgid sg socat softlimit ssh ssh-agent sshpass start-stop-daemon
     stdbuf strace su sudo systemd-inhibit systemd-run taskset tasksh time timeout tini tmate tmux torify torsocks toybox tsocks
     unbuffer unshare uwsgi valgrind watch watchexec watchman wine xargs xdg-open xvfb-run zmx",
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
    "babel-node bb bun clisp clj clojure coffee crystal csi deno ecl elixir erl escript esno expect fsi ghci gforth gprolog groovy
     guile hy iex io ipython irb jjs jruby jrunscript jshell julia jython lua luajit maxima mujs node nodejs ocaml octave
     osascript perl php pike pry pypy pypy3 python python2 python3 qjs r racket raku rexx rscript ruby sage sbcl scala scheme swift
     swipl tclsh ts-node tsx utop wish yap",
);

/// Programs that read commands from their input, some of which run programs.
pub const COMMANDED: WordList = WordList(
    "cpan crash dc debugfs ed emacs ex ftp gimp gnuplot gp gs iftop lftp m4 mail mailx mariadb msfconsole mutt mysql mysqlsh ncftp
     nslookup psftp psql red rvim sftp smbclient sqlite sqlite3 tdbtool telnet vi view vim nvim virsh",
);

/// Arguments that run a program or load code, by what a command begins with. One letter after a single dash is looked for in
/// bundles of letters too, but not with `^` before it; a long one in its abbreviations. `*` at an end stands for anything; `=` for a
/// word that sets a variable.
pub const RUNNING: WordTable = WordTable(include_str!("../../../assets/programs/runs.txt"));

/// Arguments that write a file, or read more arguments from one. The same form.
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

/// Programs that reach no server and run no other program, whatever their options.
pub const LOCAL: WordList = WordList(
    ": [ basename cat cd chmod cp cut date diff dirname du echo false grep head jq ls mkdir mv printf pwd rm rmdir sha256sum
     sleep tail tee test touch tr true uniq wc which",
);

/// Programs whose arguments name servers.
pub const REACHING: WordList = WordList(
    "curl dig ftp host http https nc ncat netcat nslookup ping ping6 rsync scp sftp ssh telnet traceroute wget whois
     xh",
);
