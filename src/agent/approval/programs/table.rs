//! The tables of programs; the doc of each says what it lists.

/// Words with blanks between.
#[derive(Clone, Copy)]
pub struct Words(&'static str);

impl Words {
    /// The words, in their order.
    pub fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split_ascii_whitespace()
    }

    /// Returns true if `word` is one of them.
    pub fn contains(self, word: &str) -> bool {
        self.iter().any(|it| it == word)
    }
}

/// Lines of a key, a colon and words.
pub struct Rows(&'static str);

impl Rows {
    /// Each key with its words.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Words)> {
        let rows = self.0.lines().filter_map(|it| it.split_once(": "));
        rows.map(|(key, words)| (key.trim_start(), Words(words)))
    }
}

/// Programs that run another program, or text as commands.
pub const WRAPPERS: Words = Words(
    "at batch bwrap busybox capsh catchsegv chpst chroot chrt command coproc crontab dbus-run-session direnv doas
     dtach entr env envdir expect fakeroot faketime firejail flock gdb hyperfine ionice ld.so lldb ltrace mosh newgrp
     nice nix-shell nohup nsenter numactl parallel perf pkexec proot rlwrap rr runcon runuser screen script setarch
     setpriv setsid setuidgid sg socat softlimit ssh sshpass start-stop-daemon stdbuf strace su sudo systemd-run
     taskset time timeout tmux toybox unbuffer unshare valgrind watch xargs xvfb-run zmx",
);

/// Builtins of the shell that rules do not allow: they change the shell, or run their arguments as code.
pub const BUILTINS: Words = Words(
    ". alias bg bind break builtin caller compgen complete compopt continue declare dirs disown enable eval exec exit
     export fc fg getopts hash history jobs let local logout mapfile popd pushd read readarray readonly return set
     shift shopt source suspend times trap typeset ulimit umask unalias unset wait",
);

/// Shells.
pub const SHELLS: Words =
    Words("ash bash csh dash elvish fish ksh mksh nu oil osh posh pwsh rbash sh tcsh xonsh yash zsh");

/// Interpreters, without their versions.
pub const INTERPRETERS: Words = Words(
    "bun deno elixir expect guile ipython jshell julia lua luajit node nodejs osascript perl php pypy pypy3 python
     python2 python3 r racket rscript ruby scala tclsh ts-node tsx wish",
);

/// Options that run a program, load code or write a file, by what a command begins with. One letter after a single dash is
/// looked for in bundles of letters too; a long one in its abbreviations.
pub const OPTIONS: Rows = Rows(
    "\
    git: --exec-path --config-env --exec --upload-pack --receive-pack --output --ext-diff --textconv --open-files-in-pager --extcmd --config --template --gpg-sign --git-dir --work-tree --output-directory --tool --edit-description --hooks-path --filters
    git archive: -o --remote
    git clone: -u -c
    git diff: -O
    git difftool: -x -t
    git format-patch: -o
    git grep: -O
    git rebase: -x
    git mergetool: -t
    7z: -o -w
    ansible: -e -a -m
    awk: -f -i -l -E -e --file --include --load --exec --source --dump-variables --profile -o -d -p
    bat: --pager --config-file
    bzip2: --to-command
    cargo: --config -Z --unit-graph
    clang: -f -B -W -X --plugin
    cmake: -P -E -C
    cpio: --rsh-command -F -O
    ctest: -S --build-and-test
    curl: -o -O -K -D -c -T -F --output --output-dir --remote-name --remote-name-all --config --dump-header --cookie-jar --upload-file --engine --trace --trace-ascii --stderr --libcurl --hsts --alt-svc --etag-save --form --data --data-binary --data-raw --data-urlencode --json -d --next --unix-socket --abstract-unix-socket --netrc-file --proxy -x
    date: -f -s --set --file
    delta: --pager
    diff: --to-file --from-file
    docker: -H --host --config --context
    fd: -x -X --exec --exec-batch
    fdfind: -x -X --exec --exec-batch
    file: -C -m --compile --magic-file
    fzf: --bind --preview --listen --become
    gawk: -f -i -l -E -e --file --include --load --exec --source --dump-variables --profile -o -d -p
    gcc: -B -f -W -X -specs --specs -wrapper -@
    go: -exec -toolexec -vettool -modfile -overlay -o -C -ldflags -gcflags -cpuprofile -memprofile -trace -coverprofile -outputdir -test.outputdir -blockprofile -mutexprofile
    gradle: -I -b -c --init-script --build-file --settings-file --include-build
    grep: -f --file
    gzip: -S
    ip: -b -batch -B
    jq: -f -L --from-file
    less: -o -O -k --log-file --lesskey-file --LOG-FILE
    make: -f -C -I -E --eval --file --makefile --directory --include-dir
    man: -P -H --pager --html --browser -C --config-file -X --gxditview -T
    mvn: -f -s -gs --file --settings --global-settings
    nc: -e -c --exec --sh-exec --lua-exec
    ncat: -e -c --exec --sh-exec --lua-exec
    nmap: --script -oN -oX -oA -oG
    npm: --script-shell --node-options --shell --editor --viewer --prefix --git --userconfig --globalconfig -c --call
    npx: -c --call --shell --node-options --script-shell -p --package
    openssl: -engine -provider -provider-path -config -out -writerand
    pip: --python --target -t --prefix --root --log --index-url -i --extra-index-url
    pnpm: --script-shell --node-options -c --shell-mode --dir -C
    pytest: -p -c --rootdir --confcutdir -o --override-ini --pdbcls --debugger --basetemp
    rg: --pre --hostname-bin -f --file -z --search-zip
    rsync: -e --rsh --rsync-path --log-file --write-batch --only-write-batch --temp-dir -M --remote-option --daemon --config
    rustc: -C -Z -o --codegen --out-dir --sysroot
    scp: -S -o -F -D -J
    sed: -i -f --in-place --file
    sftp: -S -o -F -D -b -J -s
    shuf: -o --output
    sort: -o -T --output --compress-program --temporary-directory --files0-from
    split: --filter
    sqlite3: -cmd -init -A -append
    tail: --pid
    tar: -I -F -C -P --use-compress-program --to-command --checkpoint-action --info-script --new-volume-script --rmt-command --rsh-command --directory --absolute-names --one-top-level --index-file
    tcpdump: -z -w -Z -r
    tree: -o -R --fromfile
    vim: -c -S -s -w -W --cmd -u -U +
    wget: -O -o -P -a -i -e --output-document --output-file --directory-prefix --append-output --input-file --execute --use-askpass --config --post-file --post-data --body-file --body-data --load-cookies --save-cookies --warc-file --rejected-log --hsts-file
    xxd: -r
    yarn: --use-yarnrc --cwd --script-shell --node-options
    zip: -T -TT --unzip-command -O --output-file -m --move",
);

/// Programs of the same options.
pub const SAME: Rows = Rows(
    "\
    bsdtar: tar
    c++: gcc
    cc: gcc
    clang++: clang
    egrep: grep
    fgrep: grep
    g++: gcc
    gmake: make
    gsed: sed
    gtar: tar
    mawk: awk
    more: less
    nano: vim
    nawk: awk
    netcat: nc
    nvim: vim
    original-awk: awk
    pip3: pip
    podman: docker
    vi: vim
    view: vim",
);

/// Programs whose second word says what they do.
pub const SECOND: Words = Words(
    "apt apt-get aws az brew bun bundle bunx cabal cargo composer conda dart deno dnf docker dotnet flutter flyctl
     gcloud gem gh git glab go gradle gradlew helm heroku hg jj just kubectl lerna make mamba mix mvn mvnw nix nox
     npm npx nx openssl pip pip3 pipenv pipx pnpm pnpx podman poetry pre-commit rake rustup stack svn swift systemctl
     task terraform tofu tox turbo uv uvx vercel yarn zig",
);

/// Programs whose third word says what they do after one of these second words; `*`: after any.
pub const THIRD: Rows = Rows(
    "\
    aws: *
    az: *
    bun: run x
    bundle: exec
    cargo: nextest
    docker: buildx compose container image network system volume
    gcloud: *
    gh: *
    glab: *
    npm: exec run run-script x
    pipenv: run
    pipx: run
    pnpm: dlx exec run
    podman: compose container image network system volume
    poetry: run
    uv: pip run tool
    yarn: dlx exec run",
);

/// Programs that a rule of one word would give everything to: what they do stands in their arguments alone.
pub const UNBOUND: Words = Words("chmod chown dd ln mv rm rmdir shred tee truncate unlink");

/// Programs whose arguments name servers.
pub const REACHING: Words = Words(
    "curl dig ftp host http https nc ncat netcat nslookup ping ping6 rsync scp sftp ssh telnet traceroute wget whois
     xh",
);
