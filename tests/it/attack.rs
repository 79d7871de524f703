//! Attacks from inside of the sandbox, written from what it promises. Each has a control: without the sandbox it succeeds,
//! so that an attack which fails for another reason is noticed.
//!
//! What cannot be tried on a machine is said aloud, and where namespaces work a least number of attacks must have been tried.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::PermissionsExt as _,
            net::{UnixDatagram, UnixListener},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{mock_model::Model, say, until};

/// Who attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Root,
    User,
}

/// An attack is a part of a script that ends well when it has broken the promise.
struct Attack {
    name: &'static str,
    script: &'static str,
    /// The control succeeds for the machine's administrator only.
    needs_root: bool,
    /// Without namespaces this is known to be open.
    is_open_in_part: bool,
    /// It is about links with a protected name, which bubblewrap cannot hold: they are put back afterwards.
    is_by_link: bool,
}

const fn attack(name: &'static str, script: &'static str) -> Attack {
    Attack {
        name,
        script,
        needs_root: false,
        is_open_in_part: false,
        is_by_link: false,
    }
}

const fn by_link(name: &'static str, script: &'static str) -> Attack {
    Attack {
        is_by_link: true,
        ..attack(name, script)
    }
}

const fn by_root(name: &'static str, script: &'static str) -> Attack {
    Attack {
        needs_root: true,
        ..attack(name, script)
    }
}

const fn open_in_part(name: &'static str, script: &'static str) -> Attack {
    Attack {
        is_open_in_part: true,
        ..attack(name, script)
    }
}

/// `@OUT@` lies outside, `@HOME@` is the home, and the script starts in the workspace.
const ATTACKS: &[Attack] = &[
    // Nothing is written outside.
    attack("write outside", "echo x > @OUT@/new"),
    attack("write outside through a link", "ln -s @OUT@ l1 && echo x > l1/new"),
    attack(
        "write outside through a link to a file",
        "ln -s @OUT@/file l2 && echo x >> l2",
    ),
    attack("write outside through a hard link", "ln @OUT@/file h1 && echo x >> h1"),
    // Where the sandbox has a /tmp of its own and the bench lies in /tmp, there is nothing to remove: that is no success.
    attack(
        "remove outside",
        "[ -e @OUT@/victim ] && rm -f @OUT@/victim && ! [ -e @OUT@/victim ]",
    ),
    attack("take a file from outside", "mv @OUT@/file taken && ! [ -e @OUT@/file ]"),
    attack("make a folder outside", "mkdir @OUT@/folder"),
    attack(
        "cut a file outside",
        "python3 -c 'import os; os.truncate(\"@OUT@/file\", 0)'",
    ),
    attack(
        "a nameless file outside",
        "python3 -c 'import os; os.open(\"@OUT@\", os.O_TMPFILE|os.O_WRONLY)'",
    ),
    attack("write outside by way of a process", "echo x > /proc/$$/root@OUT@/new"),
    attack("write to the home", "echo x > @HOME@/.bashrc"),
    open_in_part("rights outside", "chmod 640 @OUT@/file"),
    open_in_part("times outside", "touch -d 2001-01-01 @OUT@/file"),
    open_in_part(
        "attributes outside",
        "python3 -c 'import os; os.setxattr(\"@OUT@/file\", \"user.x\", b\"1\")'",
    ),
    by_root("mount something", "mount -t tmpfs none @OUT@"),
    by_root(
        "make all writable again",
        "mount -o remount,bind,rw / && echo x > @OUT@/new",
    ),
    by_root(
        "a device of a disk",
        "mknod disk b $(mountpoint -d / | tr : ' ') && head -c 1 disk",
    ),
    // Git's state, what runs or decides what runs, and ignored files stay.
    attack("a hook", "echo evil > .git/hooks/post-commit"),
    attack("git's configuration", "git config core.hooksPath evil"),
    attack(
        "a commit",
        "git -c user.name=x -c user.email=x commit -qm evil --allow-empty",
    ),
    attack("move git away", "mv .git .git2 && mkdir .git && echo x > .git/config"),
    attack("a link in git's place", "rm -rf .git; ln -s @OUT@ .git"),
    attack("uncover git", "umount .git 2>&1; echo evil > .git/hooks/x"),
    attack(
        "an editor's tasks, which did not exist",
        "mkdir -p .vscode; echo x > .vscode/tasks.json",
    ),
    attack(
        "our own settings, which did not exist",
        "mkdir -p .sheaf; echo x > .sheaf/config.toml",
    ),
    attack("servers for editors", "echo x > .cursor/mcp.json"),
    by_link(
        "through a link with a protected name",
        "echo evil > linked/settings.json",
    ),
    by_link(
        "another link in the place of one",
        "rm -f .claude; mkdir -p .claude && echo evil > .claude/settings.json",
    ),
    by_link(
        "what a protected link leads to, which did not exist",
        "mkdir -p nowhere; echo evil > .husky/pre-commit",
    ),
    by_link(
        "another name for what is protected",
        "mv linked linked2 && echo evil > linked2/settings.json",
    ),
    attack(
        "the user's settings, which are a link into the workspace",
        "echo evil >> settings.toml",
    ),
    attack(
        "move what holds a protected folder",
        "mv deep deep2; mkdir -p deep/.idea; echo evil > deep/.idea/run.xml; grep -q evil deep/.idea/run.xml",
    ),
    attack("an ignored file", "echo x >> local.toml"),
    attack(
        "a hook in a folder that git's configuration names",
        "echo evil > named/hooks/post-commit",
    ),
    attack("what git's configuration includes", "echo '[alias]' >> common.cfg"),
    attack(
        "attributes that an included file names",
        "echo '* filter=x' >> attributes.txt",
    ),
    attack(
        "an editor's tasks deep in build output",
        "echo evil > built/a/b/c/.vscode/tasks.json",
    ),
    attack("a build tool's configuration", "echo evil >> sub/.cargo/config.toml"),
    open_in_part("rights of a protected file", "chmod 777 .git/config"),
    // Secrets.
    attack("read a key of the user's", "grep -q secret @HOME@/.ssh/id_ed25519"),
    attack("read an environment file", "grep -q secret .env"),
    attack(
        "read an environment file deep in build output",
        "grep -q secret built/a/b/c/.env",
    ),
    attack("copy an environment file", "cp .env copy && grep -q secret copy"),
    attack(
        "read a secret through a link",
        "ln -s .env plain && grep -q secret plain",
    ),
    attack(
        "read a secret by way of a process",
        "grep -q secret /proc/self/root$PWD/.env",
    ),
    attack(
        "move a secret's folder",
        "mv config config2 && grep -q secret config2/.env",
    ),
    attack("rights of a secret", "chmod 644 .env && grep -q secret .env"),
    attack("what an ignore file names", "grep -q secret private/plan.txt"),
    attack("a key in the environment", "env | grep -q OPENAI_API_KEY"),
    by_root("the accounts of the machine", "grep -q root /etc/shadow"),
    // No network, no sockets of others.
    attack("a server on this machine", "exec 3<>/dev/tcp/127.0.0.1/@TCP@"),
    attack(
        "datagrams",
        "python3 -c 'import socket; s=socket.socket(2,2); s.settimeout(1); s.sendto(b\"x\",(\"127.0.0.1\",@UDP@)); s.recv(9)'",
    ),
    attack(
        "a socket in a folder",
        "python3 -c 'import socket; socket.socket(1).connect(\"@SOCK@\")'",
    ),
    attack(
        "a socket without a place",
        "python3 -c 'import socket; socket.socket(1).connect(\"\\0@ABSTRACT@\")'",
    ),
    attack("a local socket at all", "python3 -c 'import socket; socket.socket(1)'"),
    attack(
        "datagrams to a socket in a folder",
        "python3 -c 'import socket; socket.socketpair(1, 2)[0].sendto(b\"x\", \"@DATAGRAMS@\")'",
    ),
    attack(
        "raw datagrams to a socket in a folder",
        "python3 -c 'import socket; socket.socketpair(1, 3)[0].sendto(b\"x\", \"@DATAGRAMS@\")'",
    ),
    attack(
        "a socket of the kernel's log",
        "python3 -c 'import socket; socket.socket(16, 3, 15)'",
    ),
    // Other processes, and the kernel.
    attack("end another process", "kill @VICTIM@"),
    attack("limits of another process", "prlimit --pid @VICTIM@ --nofile=64:64"),
    attack("priority of another process", "renice -n 19 -p @VICTIM@"),
    attack(
        "look into another process",
        "grep -q VICTIMS_SECRET /proc/@VICTIM@/environ",
    ),
    attack("the folder of another process", "ls /proc/@VICTIM@/root/"),
    attack(
        "trace",
        "python3 -c 'import ctypes; exit(ctypes.CDLL(None).ptrace(0,0,0,0) != 0)'",
    ),
    attack("a namespace of a user", "unshare --user true"),
    by_root("a namespace of mounts", "unshare --mount true"),
    by_root(
        "into a namespace",
        "python3 -c 'import ctypes,os; exit(ctypes.CDLL(None).setns(os.open(\"/proc/self/ns/ipc\",0),0) != 0)'",
    ),
    by_root(
        "a switch of the machine",
        "cat /proc/sys/vm/swappiness > v && cat v > /proc/sys/vm/swappiness",
    ),
    by_root("another root", "chroot / true"),
    attack(
        "keys typed for the user",
        "python3 -c 'import pty,os,fcntl,termios\np,f=pty.fork()\nif p==0:\n try: fcntl.ioctl(0,termios.TIOCSTI,b\"x\"); os._exit(0)\n except OSError: os._exit(1)\nexit(os.waitpid(p,0)[1]!=0)'",
    ),
    attack(
        "rings of system calls",
        "python3 -c 'import ctypes; l=ctypes.CDLL(None,use_errno=True); l.syscall(425,1,None); exit(ctypes.get_errno()==1)'",
    ),
    attack("a memory of what crashed", "[ \"$(ulimit -Hc)\" != 0 ]"),
    open_in_part(
        "as many processes as one likes",
        "[ $(cat /proc/sys/kernel/pid_max) -gt 4096 ] && { [ \"$(ulimit -u)\" = unlimited ] || [ \"$(ulimit -u)\" -gt 4096 ]; }",
    ),
];

/// What a guarded command can do while it runs, and what is put back behind it.
const PUT_BACK: &[&str] = &[
    "a hook",
    "git's configuration",
    "a commit",
    "a link in git's place",
    "another link in the place of one",
    "uncover git",
    "servers for editors",
    "through a link with a protected name",
    "the user's settings, which are a link into the workspace",
    "move what holds a protected folder",
    "an ignored file",
    "a hook in a folder that git's configuration names",
    "what git's configuration includes",
    "attributes that an included file names",
    "an editor's tasks deep in build output",
    "a build tool's configuration",
];

/// How the sandbox is asked for: its name here, what the variable says, what the command line says, and how many attacks
/// that work without it must have been tried and held, by root and by a user. Less means that the harness is broken.
struct Way {
    name: &'static str,
    at_most: &'static str,
    options: &'static [&'static str],
    least: (usize, usize),
}

const WAYS: [Way; 4] = [
    Way {
        name: "full",
        at_most: "full",
        options: &[],
        least: (57, 49),
    },
    Way {
        name: "bubblewrap",
        at_most: "bubblewrap",
        options: &[],
        least: (53, 45),
    },
    Way {
        name: "partial",
        at_most: "partial",
        options: &[],
        least: (52, 44),
    },
    Way {
        name: "partial, guarded",
        at_most: "partial",
        options: &["--guard"],
        least: (44, 36),
    },
];

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Folders, servers and a victim.
pub struct Bench {
    pub base: PathBuf,
    victim: Child,
    values: Vec<(&'static str, String)>,
    _sockets: (UnixListener, UnixListener, UnixDatagram),
}

impl Bench {
    pub fn new(who: Who) -> Self {
        // `/tmp` is covered in the sandbox: there, an attack would miss for the wrong reason.
        let name = format!(
            "attack-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let base = crate::scratch().join(&name);
        for (path, text) in [
            ("out/file", "x"),
            ("out/victim", "x"),
            ("home/.ssh/id_ed25519", "secret"),
            ("work/.env", "KEY=secret"),
            ("work/.gitignore", "local.toml\nbuilt/\n"),
            ("work/built/a/b/c/.env", "secret"),
            ("work/built/a/b/c/.vscode/tasks.json", "{}"),
            ("work/named/hooks/pre-commit", "exit 0\n"),
            ("work/common.cfg", "[core]\n\tattributesFile = attributes.txt\n"),
            ("work/attributes.txt", "* text\n"),
            ("work/sub/.cargo/config.toml", "[alias]\n"),
            ("work/.sheafignore", "private/\n"),
            ("work/private/plan.txt", "secret"),
            ("work/config/.env", "secret"),
            ("work/deep/.idea/run.xml", "x"),
            ("work/.cursor/mcp.json", "{}"),
            ("work/local.toml", "x"),
            ("work/linked/settings.json", "{}"),
            ("work/settings.toml", "# mine\n"),
            ("work/a.txt", "x"),
        ] {
            let path = base.join(path);
            fs::create_dir_all(path.parent().expect("the test can do this")).expect("the test can do this");
            fs::write(path, text).expect("the test can do this");
        }
        for (link, target) in [(".claude", "linked"), (".husky", "nowhere")] {
            std::os::unix::fs::symlink(target, base.join("work").join(link)).expect("the test can do this");
        }
        fs::create_dir_all(base.join("home/.config/sheaf")).expect("the test can do this");
        std::os::unix::fs::symlink(
            base.join("work/settings.toml"),
            base.join("home/.config/sheaf/config.toml"),
        )
        .expect("the test can do this");
        let git = Command::new("git")
            .args(["init", "-q"])
            .current_dir(base.join("work"))
            .status();
        assert!(git.expect("the test can do this").success());
        for (key, value) in [("core.hooksPath", "named/hooks"), ("include.path", "../common.cfg")] {
            let git = Command::new("git")
                .args(["config", key, value])
                .current_dir(base.join("work"))
                .status();
            assert!(git.expect("the test can do this").success());
        }
        let tcp = TcpListener::bind("127.0.0.1:0").expect("the test can do this");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("the test can do this");
        let ports = (
            tcp.local_addr().expect("the test can do this").port(),
            udp.local_addr().expect("the test can do this").port(),
        );
        std::thread::spawn(move || while tcp.accept().is_ok() {});
        std::thread::spawn(move || {
            let mut buffer = [0; 16];
            while let Ok((_, from)) = udp.recv_from(&mut buffer) {
                udp.send_to(b"y", from).ok();
            }
        });
        // In the workspace, so that no wall of files hides them.
        let socket = base.join("work/socket");
        let placed = UnixListener::bind(&socket).expect("the test can do this");
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).expect("the test can do this");
        let datagrams = base.join("work/datagrams");
        let datagram_socket = UnixDatagram::bind(&datagrams).expect("the test can do this");
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("the test can do this");
        let abstract_one = UnixListener::bind_addr(&address).expect("the test can do this");
        if who == Who::User && is_root() {
            let done = Command::new("chown").args(["-R", "65534:65534"]).arg(&base).status();
            assert!(done.expect("the test can do this").success());
        }
        let mut victim = Command::new("sleep");
        victim.arg("600").env("VICTIMS_SECRET", "1").stdout(Stdio::null());
        if who == Who::User && is_root() {
            victim.uid(65534).gid(65534);
        }
        let victim = victim.spawn().expect("the test can do this");
        let shown = |name: &str| base.join(name).display().to_string();
        let values = vec![
            ("@OUT@", shown("out")),
            ("@HOME@", shown("home")),
            ("@TCP@", ports.0.to_string()),
            ("@UDP@", ports.1.to_string()),
            ("@SOCK@", socket.display().to_string()),
            ("@DATAGRAMS@", datagrams.display().to_string()),
            ("@ABSTRACT@", name),
            ("@VICTIM@", victim.id().to_string()),
        ];
        Self {
            base,
            victim,
            values,
            _sockets: (placed, abstract_one, datagram_socket),
        }
    }

    pub fn fill(&self, script: &str) -> String {
        let fill = |text: String, (name, value): &(&str, String)| text.replace(name, value);
        self.values.iter().fold(script.to_owned(), fill)
    }

    pub fn command(&self, who: Who, program: &str) -> Command {
        let mut command = of(who, program);
        command
            .current_dir(self.base.join("work"))
            .env("HOME", self.base.join("home"))
            .env("OPENAI_API_KEY", "secret")
            .env_remove("SHEAF_SANDBOX_AT_MOST");
        for name in ["CONFIG_HOME", "DATA_HOME", "STATE_HOME", "CACHE_HOME", "RUNTIME_DIR"] {
            command.env_remove(format!("XDG_{name}"));
        }
        command.stdin(Stdio::null());
        command
    }

    fn held(&self, who: Who, at_most: &str, options: &[&str], script: &str) -> Output {
        let mut command = self.command(who, env!("CARGO_BIN_EXE_sheaf"));
        command.env("SHEAF_SANDBOX_AT_MOST", at_most);
        command.args(["sandbox", "run"]).args(options);
        command.args(["--", "bash", "-c", &self.fill(script)]);
        command.output().expect("the test can do this")
    }

    fn plain(&self, who: Who, script: &str) -> bool {
        let mut command = self.command(who, "bash");
        let status = command
            .args(["-c", &self.fill(script)])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        status.status().expect("the test can do this").success()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.victim.kill().ok();
        self.victim.wait().ok();
        // An attack that mounts something has done so where it was tried without the sandbox.
        let mut umount = Command::new("umount");
        umount.arg("-l").arg(self.base.join("out"));
        umount.stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
        fs::remove_dir_all(&self.base).ok();
    }
}

fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|it| it.contains("\nUid:\t0\t"))
}

/// Whoever runs the tests.
fn ourselves() -> Who {
    if is_root() { Who::Root } else { Who::User }
}

/// A program that `who` starts: a user other than root, where the tests run as root.
fn of(who: Who, program: &str) -> Command {
    if who == ourselves() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", program]);
    command
}

/// Those as whom we can attack here.
pub fn attackers() -> Vec<Who> {
    if !is_root() {
        say("\nSKIPPED: attacks as root, for the tests do not run as root\n");
        return vec![Who::User];
    }
    // The same program is started by somebody else, who must be able to reach it.
    let reached = of(Who::User, env!("CARGO_BIN_EXE_sheaf"))
        .arg("--version")
        .env("HOME", "/")
        .output();
    if reached.is_ok_and(|it| it.status.success()) {
        return vec![Who::Root, Who::User];
    }
    say("\nSKIPPED: attacks as a user, who cannot start the program here\n");
    vec![Who::Root]
}

pub fn can_unshare(who: Who) -> bool {
    let mut command = of(who, "unshare");
    if who == Who::User {
        command.arg("--user");
    }
    command.args(["--net", "--pid", "--fork", "true"]);
    command.stderr(Stdio::null()).status().is_ok_and(|it| it.success())
}

/// All attacks, one after the other.
fn script() -> String {
    ATTACKS
        .iter()
        .map(|it| {
            format!(
                "( {}\n) >/dev/null 2>&1 </dev/null && echo \"BROKEN {}\" || echo \"held {}\"\n",
                it.script, it.name, it.name
            )
        })
        .collect()
}

/// All attacks in one sandbox: what became of each.
fn results(bench: &Bench, who: Who, way: &Way) -> BTreeMap<String, bool> {
    let script = script();
    let output = bench.held(who, way.at_most, way.options, &script);
    let said = String::from_utf8_lossy(&output.stdout);
    let found = read_results(&said);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(found.len(), ATTACKS.len(), "{who:?} {}: {said}\n{errors}", way.name);
    found
}

/// All that is protected in a workspace, as it stands there: but for the objects of git, which are only added to.
fn protected(work: &Path) -> BTreeMap<PathBuf, String> {
    fn add(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
        let Ok(about) = fs::symlink_metadata(path) else { return };
        let content = match fs::read_link(path) {
            Ok(target) => target.display().to_string(),
            Err(_) => fs::read_to_string(path).unwrap_or_default(),
        };
        found.insert(path.to_owned(), format!("{:o} {content}", about.permissions().mode()));
        if about.is_dir() && !path.ends_with(".git/objects") {
            for entry in fs::read_dir(path).expect("the test can do this").flatten() {
                add(&entry.path(), found);
            }
        }
    }
    let mut found = BTreeMap::new();
    for name in [
        ".git",
        ".cursor",
        ".vscode",
        ".sheaf",
        ".claude",
        ".husky",
        "linked",
        "nowhere",
        "deep",
        "local.toml",
        ".env",
        "config",
        "private",
        "named",
        "common.cfg",
        "attributes.txt",
        "built",
        "sub",
        "settings.toml",
    ] {
        add(&work.join(name), &mut found);
    }
    found
}

fn read_results(said: &str) -> BTreeMap<String, bool> {
    said.lines()
        .filter_map(|line| {
            let (word, name) = line.split_once(' ')?;
            matches!(word, "BROKEN" | "held").then(|| (name.to_owned(), word == "BROKEN"))
        })
        .collect()
}

#[test]
fn what_is_promised_holds_against_attacks_that_work_without_it() {
    for who in attackers() {
        if !can_unshare(who) {
            say(&format!(
                "\nSKIPPED: {who:?}: no namespaces here, so the whole sandbox is not attacked\n"
            ));
        }
        let mut controls = 0;
        let mut useless = Vec::new();
        let mut works = BTreeMap::new();
        for it in ATTACKS {
            let bench = Bench::new(who);
            let succeeds = bench.plain(who, it.script);
            works.insert(it.name, succeeds);
            controls += usize::from(succeeds);
            let is_expected = !it.needs_root || who == Who::Root;
            if is_expected && !succeeds {
                useless.push(it.name);
            }
        }
        if !useless.is_empty() {
            say(&format!(
                "\nNOT TRIED: {who:?}: these attacks fail here without the sandbox too: {}\n",
                useless.join("; ")
            ));
        }
        for way in &WAYS {
            let tier = way.name;
            let is_partial = way.at_most == "partial";
            if !is_partial && !can_unshare(who) {
                continue;
            }
            let is_wrapped = tier == "bubblewrap";
            if is_wrapped && !Path::new("/usr/bin/bwrap").exists() {
                say(&format!("\nSKIPPED: {who:?}: bubblewrap is not installed\n"));
                continue;
            }
            let bench = Bench::new(who);
            let before = protected(&bench.base.join("work"));
            assert!(before.len() > 20, "what is compared is there: {before:?}");
            let found = results(&bench, who, way);
            let is_put_back = |it: &Attack| !way.options.is_empty() && PUT_BACK.contains(&it.name);
            // Where the bench lies in /tmp, the home is one of the sandbox's own: what counts is what is there outside.
            let is_elsewhere =
                |it: &Attack| it.name == "write to the home" && !bench.base.join("home/.bashrc").exists();
            let broken: Vec<_> = ATTACKS
                .iter()
                .filter(|it| !is_elsewhere(it))
                .filter(|it| found[it.name] && !(is_partial && it.is_open_in_part) && !is_put_back(it))
                .filter(|it| !(is_wrapped && it.is_by_link))
                .map(|it| it.name)
                .collect();
            assert_eq!(broken, Vec::<&str>::new(), "{who:?} {tier}");
            if is_wrapped {
                assert_eq!(protected(&bench.base.join("work")), before, "{who:?} {tier}");
            }
            if is_partial {
                // Rights of protected files are known to be open without namespaces, and are put back where it is guarded.
                let plain = |it: &BTreeMap<PathBuf, String>| {
                    let is_open = |it: &Path| way.options.is_empty() && it.ends_with(".git/config");
                    it.clone()
                        .into_iter()
                        .filter(|(path, _)| !is_open(path))
                        .collect::<BTreeMap<_, _>>()
                };
                assert_eq!(
                    plain(&protected(&bench.base.join("work"))),
                    plain(&before),
                    "{who:?} {tier}"
                );
            }
            // Seen from outside nothing has happened either.
            assert!(bench.base.join("out/victim").exists() && !bench.base.join("out/new").exists());
            let held = ATTACKS.iter().filter(|it| works[it.name] && !found[it.name]).count();
            let open = ATTACKS.iter().filter(|it| found[it.name]).count();
            let all = ATTACKS.len();
            say(&format!(
                "\n{who:?}, {tier}: {controls} attacks with a control, {all} in all; {held} of them were held, {open} went \
                 through, all of them known\n"
            ));
            let least = if who == Who::Root { way.least.0 } else { way.least.1 };
            assert!(
                held >= least,
                "{who:?} {tier}: only {held} attacks were tried and held: {works:?}"
            );
        }
    }
}

#[test]
fn what_the_kernel_tells_of_the_whole_machine_is_hidden() {
    // Memory, the kernel's log, keys. Most of them could not be read without root's capabilities either, so what is asked is
    // whether something covers them.
    let names = ["kcore", "kmsg", "keys", "timer_list", "sched_debug"];
    let there: Vec<_> = names.iter().filter(|it| Path::new("/proc").join(it).exists()).collect();
    assert!(there.contains(&&"keys") || there.contains(&&"kmsg"), "{there:?}");
    for who in attackers() {
        for tier in ["full", "bubblewrap"] {
            if !can_unshare(who) || (tier == "bubblewrap" && !Path::new("/usr/bin/bwrap").exists()) {
                say(&format!("\nSKIPPED: {who:?}: files of the kernel, {tier}\n"));
                continue;
            }
            let bench = Bench::new(who);
            for link in [".claude", ".husky"] {
                fs::remove_file(bench.base.join("work").join(link)).expect("the test can do this");
            }
            for name in &there {
                let path = format!("/proc/{name}");
                let is_covered = format!("[ -c {path} ] || [ \"$(stat -c %a {path})\" = 0 ]");
                assert!(!bench.plain(who, &is_covered), "the control: {path}");
                let script = format!("{{ {is_covered}; }} && ! cat {path}");
                let output = bench.held(who, tier, &[], &script);
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{who:?} {tier} {path}: {said}");
            }
        }
    }
}

#[test]
fn what_a_command_plants_does_not_stay() {
    // At the top, and below it in folders that were there: these can be made where the top is read-only, too.
    let planted = [
        ".mcp.json",
        ".envrc",
        "x.code-workspace",
        ".gitattributes",
        ".github/workflows/evil.yml",
        ".config/git/config",
        ".config/nvim/init.lua",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".opencode/agent.md",
        ".zed/tasks.json",
        ".devcontainer/devcontainer.json",
        ".npmrc",
        ".pre-commit-config.yaml",
        ".exrc",
        ".gdbinit",
        ".mise.toml",
        "named/.windsurf/rules.md",
        "deep/.vscode/tasks.json",
        "deep/er/and/.envrc",
        "deep/.github/workflows/evil.yml",
        "deep/.cargo/config.toml",
        "deep/er/.git/config",
        "built/a/b/c/d/.mcp.json",
        "built/new/.cursor/mcp.json",
    ];
    let script: String = planted
        .iter()
        .map(|it| format!("mkdir -p $(dirname {it}); echo evil > {it}; "))
        .collect();
    for who in attackers() {
        let left = |bench: &Bench| {
            let there = planted.iter().filter(|it| bench.base.join("work").join(it).exists());
            there.copied().collect::<Vec<_>>()
        };
        let bench = Bench::new(who);
        assert!(bench.plain(who, &script));
        assert_eq!(left(&bench), planted, "the control");
        for tier in ["full", "partial"] {
            if tier == "full" && !can_unshare(who) {
                continue;
            }
            let bench = Bench::new(who);
            let output = bench.held(who, tier, &[], &script);
            assert_eq!(left(&bench), Vec::<&str>::new(), "{who:?} {tier}");
            let said = String::from_utf8_lossy(&output.stderr);
            let is_said = said.contains("made `.mcp.json`") && said.contains("more");
            // Where the top of the workspace is read-only, nothing was made there.
            assert!(is_said || tier == "partial", "{who:?} {tier}: {said}");
        }
    }
}

#[test]
fn a_command_changes_neither_this_programs_settings_nor_gits() {
    // The home is the workspace and has no settings yet; then all folders of settings lie in the workspace.
    let own = ["config.toml", "rules/x.md"].map(|it| format!("sheaf/{it}"));
    let variables: [&[(&str, &str)]; 2] = [
        &[],
        &[
            ("XDG_CONFIG_HOME", "conf"),
            ("XDG_DATA_HOME", "conf"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ],
    ];
    for who in attackers() {
        for (at, variables) in variables.iter().enumerate() {
            let folder = if variables.is_empty() { ".config" } else { "conf" };
            let mut targets: Vec<String> = own.iter().map(|it| format!("{folder}/{it}")).collect();
            targets.extend([format!("{folder}/git/config"), ".gitconfig".to_owned()]);
            if !variables.is_empty() {
                targets.extend(["state/sheaf/trust.json", "cache/sheaf/x", "conf/sheaf/sessions/x"].map(str::to_owned));
            }
            let script: String = targets
                .iter()
                .map(|it| format!("mkdir -p $(dirname {it}); echo 'key_command = \"evil\"' > {it}; "))
                .collect();
            let left = |bench: &Bench| {
                let is_left = |it: &&String| {
                    fs::read_to_string(bench.base.join("work").join(it)).is_ok_and(|it| it.contains("evil"))
                };
                targets.iter().filter(is_left).cloned().collect::<Vec<_>>()
            };
            let set = |bench: &Bench, command: &mut Command| {
                command.env("HOME", bench.base.join("work"));
                for (name, value) in *variables {
                    command.env(name, bench.base.join("work").join(value));
                }
            };
            let bench = Bench::new(who);
            assert!(bench.plain(who, &script));
            assert_eq!(left(&bench), targets, "the control");
            for tier in ["full", "partial"] {
                if tier == "full" && !can_unshare(who) {
                    continue;
                }
                let bench = Bench::new(who);
                let mut command = bench.command(who, env!("CARGO_BIN_EXE_sheaf"));
                set(&bench, &mut command);
                command.env("SHEAF_SANDBOX_AT_MOST", tier);
                command.args(["sandbox", "run", "--", "bash", "-c", &script]);
                let output = command.output().expect("the test can do this");
                let said = String::from_utf8_lossy(&output.stderr);
                assert_eq!(left(&bench), Vec::<String>::new(), "{who:?} {tier} {at}: {said}");
            }
        }
    }
}

/// With `git_write` git commits, in every tier, and nothing is planted that would run later.
#[test]
fn git_writes_where_it_may_and_plants_nothing() {
    let commit = "git add a.txt && git -c user.name=x -c user.email=x commit -qm one";
    let planted = [
        ".git/hooks/post-commit",
        ".git/commondir",
        ".git/config.worktree",
        ".git/info/attributes",
        ".git/modules/third/party/hooks/post-commit",
        ".git/modules/third/party/commondir",
        ".git/worktrees/w/config.worktree",
    ];
    let plant: String = planted
        .iter()
        .map(|it| format!("mkdir -p $(dirname {it}); echo evil > {it}; "))
        .chain(["echo evil >> .git/config; true".to_owned()])
        .collect();
    let bench = |who: Who| {
        let bench = Bench::new(who);
        let repository = bench.base.join("work/.git");
        for path in [
            "modules/third/party/HEAD",
            "modules/third/party/hooks/x",
            "worktrees/w/HEAD",
        ] {
            let path = repository.join(path);
            fs::create_dir_all(path.parent().expect("the test can do this")).expect("the test can do this");
            fs::write(path, "ref: refs/heads/x\n").expect("the test can do this");
        }
        if who == Who::User && is_root() {
            let done = Command::new("chown")
                .args(["-R", "65534:65534"])
                .arg(&repository)
                .status();
            assert!(done.expect("the test can do this").success());
        }
        for link in [".claude", ".husky"] {
            fs::remove_file(bench.base.join("work").join(link)).expect("the test can do this");
        }
        bench
    };
    let config = |bench: &Bench| fs::read_to_string(bench.base.join("work/.git/config")).expect("the test can do this");
    let left = |bench: &Bench| {
        let is_left =
            |it: &&&str| fs::read_to_string(bench.base.join("work").join(it)).is_ok_and(|it| it.contains("evil"));
        planted.iter().filter(is_left).copied().collect::<Vec<_>>()
    };
    let has_commit = "[ $(git rev-list --count HEAD) = 1 ]";
    for who in attackers() {
        let control = bench(who);
        assert!(control.plain(who, &format!("{commit} && {{ {plant}; }}")));
        assert_eq!(left(&control), planted, "the control");
        assert!(config(&control).contains("evil"), "the control");
        for tier in ["full", "bubblewrap", "partial"] {
            if tier != "partial" && !can_unshare(who) {
                continue;
            }
            if tier == "bubblewrap" && !Path::new("/usr/bin/bwrap").exists() {
                continue;
            }
            let bench = bench(who);
            let before = config(&bench);
            // Without the permission there is no commit.
            bench.held(who, tier, &[], commit);
            assert!(!bench.plain(who, has_commit), "{who:?} {tier}");
            let output = bench.held(who, tier, &["--git-write"], &format!("{commit} && {{ {plant}; }}"));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(bench.plain(who, has_commit), "{who:?} {tier}: {said}");
            assert_eq!(left(&bench), Vec::<&str>::new(), "{who:?} {tier}: {said}");
            assert_eq!(config(&bench), before, "{who:?} {tier}: {said}");
            assert!(said.contains(".git/commondir"), "{who:?} {tier}: {said}");
        }
    }
}

/// A link in git's folder: what it is, the link, what it leads to, and an attack after which git runs what was planted.
const LINKS_OF_GIT: [(&str, &[(&str, &str)], &str); 5] = [
    (
        "a hook",
        &[(".git/hooks/pre-commit", "../../scripts/pre-commit")],
        "echo 'touch @OUT@/ran' >> scripts/pre-commit",
    ),
    (
        "the folder of hooks",
        &[(".git/hooks", "../scripts/hooks")],
        "printf '#!/bin/sh\\ntouch @OUT@/ran\\n' > scripts/hooks/post-commit; chmod +x scripts/hooks/post-commit",
    ),
    (
        "a link where a link leads",
        &[
            (".git/hooks", "../scripts/hooks"),
            ("scripts/hooks/pre-commit", "../pre-commit"),
        ],
        "echo 'touch @OUT@/ran' >> scripts/pre-commit",
    ),
    (
        "the configuration",
        &[(".git/config", "../scripts/config")],
        "git config -f scripts/config core.fsmonitor 'touch @OUT@/ran; false'",
    ),
    (
        "a link in a folder that the configuration names",
        &[("named/hooks/post-commit", "../../scripts/pre-commit")],
        "git config -f scripts/config core.x y; echo 'touch @OUT@/ran' >> scripts/pre-commit",
    ),
];

/// Git runs what links in its own folder lead to, so that is held like the folder itself.
#[test]
fn what_links_in_gits_folder_lead_to_is_not_changed() {
    let commit = "git status; git -c user.name=x -c user.email=x commit -q --allow-empty -m x";
    for who in attackers() {
        for (name, links, script) in LINKS_OF_GIT {
            let bench = || {
                let bench = Bench::new(who);
                let work = bench.base.join("work");
                for link in [".claude", ".husky"] {
                    fs::remove_file(work.join(link)).expect("the test can do this");
                }
                let config = "[core]\n\tbare = false\n";
                for (path, text) in [
                    ("scripts/pre-commit", "#!/bin/sh\n"),
                    ("scripts/hooks/x", ""),
                    ("scripts/config", config),
                ] {
                    let path = work.join(path);
                    fs::create_dir_all(path.parent().expect("the test can do this")).expect("the test can do this");
                    fs::write(&path, text).expect("the test can do this");
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the test can do this");
                }
                if !name.contains("names") {
                    fs::write(work.join(".git/config"), config).expect("the test can do this");
                }
                for (link, target) in links {
                    let link = work.join(link);
                    fs::remove_file(&link).or_else(|_| fs::remove_dir_all(&link)).ok();
                    std::os::unix::fs::symlink(target, link).expect("the test can do this");
                }
                own(&bench, who);
                bench
            };
            let runs = |bench: &Bench| {
                bench.plain(who, commit);
                bench.base.join("out/ran").exists()
            };
            let control = bench();
            control.plain(who, script);
            assert!(runs(&control), "the control: {name}");
            for way in &WAYS {
                if way.at_most != "partial" && !can_unshare(who) {
                    continue;
                }
                if way.name == "bubblewrap" && !Path::new("/usr/bin/bwrap").exists() {
                    continue;
                }
                for more in [&[][..], &["--git-write"]] {
                    let bench = bench();
                    let output = bench.held(
                        who,
                        way.at_most,
                        &[way.options, more].concat(),
                        &format!("echo began; {script}"),
                    );
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    assert!(!runs(&bench), "{who:?} {} {name} {more:?}: {said}", way.name);
                    let is_begun = String::from_utf8_lossy(&output.stdout).contains("began");
                    assert!(is_begun, "{who:?} {} {name} {more:?}: {said}", way.name);
                }
            }
        }
    }
}

#[test]
fn a_guarded_command_works_at_the_top_and_what_it_did_to_what_is_protected_is_put_back() {
    let work = "echo x > new && mv new newer && mkdir target && echo x > target/x && sed -i s/x/z/ a.txt && git status --short";
    for who in attackers() {
        let bench = || {
            let bench = Bench::new(who);
            // Where there are secrets, the folders that lead to them are held as ever.
            let work = bench.base.join("work");
            for path in [
                ".env",
                ".sheafignore",
                "private/plan.txt",
                "config/.env",
                "built/a/b/c/.env",
            ] {
                fs::remove_file(work.join(path)).expect("the test can do this");
            }
            bench
        };
        let (strict, guarded) = (bench(), bench());
        assert!(!strict.held(who, "partial", &[], work).status.success(), "the control");
        let output = guarded.held(who, "partial", &["--guard"], work);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success() && !said.contains("the command"),
            "{who:?}: {said}"
        );
        for name in ["newer", "target/x"] {
            assert!(guarded.base.join("work").join(name).exists(), "{who:?} {name}");
        }
        let before = protected(&guarded.base.join("work"));
        let attack = "mv .git .git2; mkdir -p .git/hooks .vscode; echo evil > .git/hooks/x; echo evil > .vscode/tasks.json; \
                      rm -r .cursor; echo evil > .mcp.json; chmod 777 deep/.idea/run.xml; echo evil > local.toml";
        let output = guarded.held(who, "partial", &["--guard"], attack);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(protected(&guarded.base.join("work")), before, "{who:?}: {said}");
        assert!(!guarded.base.join("work/.mcp.json").exists() && !guarded.base.join("work/.git2").exists());
        for told in [
            "changed `.git`",
            "changed `.cursor`",
            "changed `local.toml`",
            "made `.mcp.json`",
            "made `.vscode`",
        ] {
            assert!(said.contains(told), "{who:?} {told}: {said}");
        }
        // Git may be written where it was asked for, and code is planted there no more than elsewhere.
        let commit = "git add a.txt && git -c user.name=x -c user.email=x commit -qm one && echo evil > .git/hooks/x";
        let output = guarded.held(who, "partial", &["--guard", "--git-write"], commit);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("changed `.git/hooks/x`") && !said.contains("HEAD"),
            "{who:?}: {said}"
        );
        let has_commit = guarded.plain(who, "[ $(git rev-list --count HEAD) = 1 ] && ! [ -e .git/hooks/x ]");
        assert!(has_commit, "{who:?}: {said}");
    }
}

/// A command in the whole sandbox that waits before it does what it should.
struct Waiting {
    child: Child,
    folder: PathBuf,
}

impl Waiting {
    /// Begins it in a folder of the workspace, and waits until it waits.
    fn begin(bench: &Bench, who: Who, folder: &str, script: &str) -> Self {
        let folder = bench.base.join("work").join(folder);
        let script = format!("touch ready; until [ -e go ]; do sleep 0.01; done; rm ready go; {script}");
        let mut command = bench.command(who, env!("CARGO_BIN_EXE_sheaf"));
        command.args(["sandbox", "run", "--", "bash", "-c", &script]);
        command
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the test can do this");
        while !folder.join("ready").exists() {
            assert!(child.try_wait().expect("the test can do this").is_none(), "it ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { child, folder }
    }

    /// Lets it go on. Returns whether it ended well, and what was said of it.
    fn end(self) -> (bool, String) {
        fs::write(self.folder.join("go"), "").expect("the test can do this");
        let output = self.child.wait_with_output().expect("it ends");
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }
}

/// Makes what a test has made the attacker's.
pub fn own(bench: &Bench, who: Who) {
    if who == Who::User && is_root() {
        let mut command = Command::new("chown");
        command.args(["-hR", "65534:65534"]).arg(&bench.base);
        assert!(command.status().expect("the test can do this").success());
    }
}

#[test]
fn a_link_with_the_name_of_a_secret_uncovers_no_secret() {
    let script =
        "cat @HOME@/.ssh/id_ed25519 .env built/a/b/c/.env /etc/shadow; (echo >> .git/config) && echo secret; echo ran";
    for who in attackers() {
        for way in &WAYS[..3] {
            if way.at_most != "partial" && !can_unshare(who) {
                continue;
            }
            if way.name == "bubblewrap" && !Path::new("/usr/bin/bwrap").exists() {
                continue;
            }
            for target in ["/", "/tmp", "/dev", "/home", "..", ".", "../home", "/etc"] {
                let bench = Bench::new(who);
                let work = bench.base.join("work");
                for link in [".claude", ".husky"] {
                    fs::remove_file(work.join(link)).expect("the test can do this");
                }
                std::os::unix::fs::symlink(target, work.join("x.pem")).expect("the test can do this");
                let output = bench.held(who, way.at_most, way.options, script);
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                let errors = String::from_utf8_lossy(&output.stderr);
                assert_eq!(said.trim(), "ran", "{who:?} {} {target}: {errors}", way.name);
            }
        }
    }
}

#[test]
fn a_folder_that_nobody_could_look_into_keeps_its_secrets_and_the_users_files() {
    for who in attackers() {
        let bench = || {
            let bench = Bench::new(who);
            let vault = bench.base.join("work/vault");
            fs::create_dir_all(vault.join(".vscode")).expect("the test can do this");
            for (name, text) in [(".env", "secret"), (".vscode/tasks.json", "mine")] {
                fs::write(vault.join(name), text).expect("the test can do this");
            }
            own(&bench, who);
            fs::set_permissions(&vault, fs::Permissions::from_mode(0o000)).expect("the test can do this");
            bench
        };
        let read = "chmod 755 vault; cat vault/.env; chmod 311 vault; cat vault/.env";
        assert!(
            bench().plain(who, &format!("{{ {read}; }} | grep -q secret")),
            "the control"
        );
        for tier in ["full", "partial"] {
            if tier == "full" && !can_unshare(who) {
                continue;
            }
            let output = bench().held(who, tier, &[], read);
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(!said.contains("secret"), "{who:?} {tier}: {said}");
        }
        if !can_unshare(who) {
            continue;
        }
        // What the user lets be seen meanwhile was there.
        let bench = bench();
        let vault = bench.base.join("work/vault");
        let waiting = Waiting::begin(&bench, who, ".", "true");
        fs::set_permissions(&vault, fs::Permissions::from_mode(0o755)).expect("the test can do this");
        let (_, said) = waiting.end();
        let kept = fs::read_to_string(vault.join(".vscode/tasks.json"));
        assert_eq!(kept.expect("it is there"), "mine", "{who:?}: {said}");
        let is_said = said.contains("`vault/.vscode`, which runs or decides what runs, was found after the command");
        assert!(is_said || (who == Who::Root && is_root()), "{who:?}: {said}");
    }
}

#[test]
fn what_a_command_closes_is_looked_into() {
    for who in attackers() {
        if !can_unshare(who) {
            continue;
        }
        let bench = Bench::new(who);
        let script = "mkdir -p shut/deep/.vscode shut/mine; echo evil > shut/deep/.vscode/tasks.json; chmod 311 shut/deep; chmod 0 shut";
        let output = bench.held(who, "full", &[], script);
        let said = String::from_utf8_lossy(&output.stderr);
        let shut = bench.base.join("work/shut");
        assert!(said.contains("made `shut/deep/.vscode`"), "{who:?}: {said}");
        assert!(shut.join("mine").is_dir() && !shut.join("deep/.vscode").exists());
        // Who may look into everything had nothing to open.
        let is_open =
            said.contains("the right to look into `shut`") && said.contains("the right to look into `shut/deep`");
        assert!(is_open || (who == Who::Root && is_root()), "{who:?}: {said}");
    }
}

#[test]
fn two_programs_one_in_a_folder_of_the_others_take_nothing_from_each_other() {
    for who in attackers() {
        if !can_unshare(who) {
            continue;
        }
        let bench = Bench::new(who);
        let inner = bench.base.join("work/inner");
        let git = Command::new("git").args(["init", "-q"]).arg(&inner).status();
        assert!(git.expect("the test can do this").success());
        own(&bench, who);
        // What stands for names in the inner one comes while the outer one runs, and is nobody's file.
        let outer = Waiting::begin(&bench, who, ".", "true");
        let plant = "mkdir -p .vscode; echo evil > .vscode/tasks.json";
        let own = Waiting::begin(&bench, who, "inner", plant);
        assert!(inner.join(".vscode").is_dir(), "it stands for the name");
        let (is_well, said) = outer.end();
        assert!(
            is_well && !said.contains("made") && inner.join(".vscode").is_dir(),
            "{who:?}: {said}"
        );
        let (is_well, said) = own.end();
        assert!(!is_well && !inner.join(".vscode").exists(), "{who:?}: {said}");
        // It goes while the outer one runs, which then can make what has that name.
        let own = Waiting::begin(&bench, who, "inner", "true");
        let outer = Waiting::begin(&bench, who, ".", &format!("cd inner; {plant}"));
        own.end();
        assert!(!inner.join(".vscode").exists());
        let (is_well, said) = outer.end();
        assert!(is_well && said.contains("made `inner/.vscode`"), "{who:?}: {said}");
        assert!(!inner.join(".vscode").exists(), "{who:?}");
    }
}

#[test]
fn a_program_that_git_would_run_and_that_was_not_there_does_not_stay() {
    let script = "mkdir -p bin; printf '#!/bin/sh\\ntouch @OUT@/ran\\n' > bin/watch; chmod +x bin/watch; \
                  echo evil >> nested/tools/pre-push; echo evil > nested/later.sh";
    for who in attackers() {
        if !can_unshare(who) {
            continue;
        }
        let bench = || {
            let bench = Bench::new(who);
            let work = bench.base.join("work");
            let git = |folder: &Path, words: &[&str]| {
                let mut command = bench.command(who, "git");
                let done = command.args(words).current_dir(folder).status();
                assert!(done.expect("the test can do this").success());
            };
            fs::create_dir_all(work.join("nested/tools")).expect("the test can do this");
            fs::write(work.join("nested/tools/pre-push"), "true\n").expect("the test can do this");
            own(&bench, who);
            git(&work.join("nested"), &["init", "-q"]);
            git(&work, &["config", "core.fsmonitor", "./bin/watch"]);
            git(&work.join("nested"), &["config", "core.hooksPath", "tools"]);
            git(&work.join("nested"), &["config", "alias.x", "!sh ./later.sh"]);
            bench
        };
        let left = |bench: &Bench| {
            bench.plain(who, "git status");
            let text = fs::read_to_string(bench.base.join("work/nested/tools/pre-push")).expect("it is there");
            [
                bench.base.join("out/ran").exists(),
                bench.base.join("work/nested/later.sh").exists(),
                text.contains("evil"),
            ]
        };
        let control = bench();
        assert!(control.plain(who, script));
        assert_eq!(left(&control), [true; 3], "the control");
        let bench = bench();
        let output = bench.held(who, "full", &[], script);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(left(&bench), [false; 3], "{who:?}: {said}");
        assert!(
            said.contains("made `bin/watch`") && said.contains("made `nested/later.sh`"),
            "{said}"
        );
    }
}

/// What the tools of a language need to be found where the home is another one.
fn toolchain() -> String {
    let cargo = std::env::var("CARGO").unwrap_or_default();
    let folder = Path::new(&cargo)
        .parent()
        .unwrap_or(Path::new("/"))
        .display()
        .to_string();
    format!("export PATH={folder}:$PATH;")
}

#[test]
fn builds_and_tests_of_the_usual_languages_work_inside() {
    let who = ourselves();
    if !can_unshare(who) {
        return say("\nSKIPPED: no namespaces here, so builds are not tried in the whole sandbox\n");
    }
    for (name, needs, script) in [
        (
            "cargo build --offline",
            "cargo --version",
            "mkdir -p app/src && cd app && printf '[package]\\nname=\"app\"\\nversion=\"0.1.0\"\\nedition=\"2021\"\\n' > Cargo.toml \
             && echo 'fn main() { println!(\"built\"); }' > src/main.rs && cargo build --offline && ./target/debug/app | grep -q built",
        ),
        (
            "npm test",
            "npm --version && node --version",
            "mkdir js && cd js && echo '{\"name\":\"a\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node t.js\"}}' > package.json \
             && echo 'require(\"assert\").equal(1,1); console.log(\"tested\")' > t.js && npm test | grep -q tested",
        ),
        (
            "unittest",
            "python3 --version",
            "mkdir py && cd py && printf 'import unittest\\nclass T(unittest.TestCase):\\n  def test_a(self): self.assertEqual(1,1)\\n' > test_a.py \
             && python3 -m unittest",
        ),
        (
            "pytest",
            "python3 -m pytest --version",
            "mkdir pt && cd pt && echo 'def test_a(): assert 1 == 1' > test_a.py && python3 -m pytest -q",
        ),
        (
            "make",
            "make --version",
            "printf 'all:\\n\\tcc -o prog a.c\\n' > Makefile && echo 'int main(){return 0;}' > a.c && make && ./prog",
        ),
    ] {
        let path = toolchain();
        let bench = Bench::new(who);
        if !bench.plain(who, &format!("{path} {needs}")) {
            say(&format!("\nSKIPPED: {name}: it is not installed\n"));
            continue;
        }
        let output = bench.held(who, "full", &[], &format!("{path} {script}"));
        let told = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
        assert!(
            output.status.success(),
            "{name}: {} {}",
            told(&output.stdout),
            told(&output.stderr)
        );
    }
}

#[test]
fn what_developers_do_works_inside() {
    for who in attackers() {
        if !can_unshare(who) {
            continue;
        }
        for (name, options, script) in [
            (
                "files of the workspace",
                &[][..],
                "echo y > a.txt && mkdir -p src/new && sed -i s/y/z/ a.txt && grep -q z a.txt",
            ),
            ("git looks", &[], "git status --short && git log 2>&1; git diff"),
            (
                "git commits when it may",
                &["--git-write"],
                "git add a.txt && git -c user.name=x -c user.email=x commit -qm one && git branch two && git checkout -q two",
            ),
            (
                "git plants nothing even then",
                &["--git-write"],
                "! git config core.hooksPath evil && ! (echo x > .git/hooks/x) && ! mv .git .g2",
            ),
            (
                "a server and a client of its own",
                &[],
                "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\",0)); socket.create_connection(s.getsockname())'",
            ),
            (
                "a network when it may",
                &["--network"],
                "exec 3<>/dev/tcp/127.0.0.1/@TCP@",
            ),
            (
                "a terminal of its own",
                &[],
                "python3 -c 'import pty; exit(pty.spawn([\"true\"]))' </dev/null",
            ),
            (
                "shared memory",
                &[],
                "echo x > /dev/shm/x && python3 -c 'import multiprocessing as m; p=m.Pool(2); assert p.map(abs,[-1,-2])==[1,2]'",
            ),
            (
                "temporary files",
                &[],
                "f=$(mktemp) && echo x > $f && echo x > /tmp/y && echo x > /var/tmp/z",
            ),
            (
                "a folder that git ignores",
                &[],
                "echo 'target/' >> .gitignore; mkdir target && echo x > target/x",
            ),
            (
                "pipes of the shell",
                &[],
                "diff <(echo a) <(echo a) && cat /dev/null | cat && echo x > /dev/null",
            ),
            ("the output of others", &[], "ps -e | wc -l | grep -q '^[1-9]$'"),
        ] {
            let bench = Bench::new(who);
            let output = bench.held(who, "full", options, script);
            assert!(
                output.status.success(),
                "{who:?} {name}: {:?}\n{}{}",
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

#[test]
fn a_command_ends_as_it_would_and_leaves_nothing_behind() {
    for who in attackers() {
        for tier in ["full", "partial"] {
            if tier == "full" && !can_unshare(who) {
                continue;
            }
            let bench = Bench::new(who);
            for (script, code) in [
                ("exit 7", 7),
                ("kill -SEGV $$", 128 + 11),
                ("true", 0),
                ("kill -TERM $$", 128 + 15),
            ] {
                assert_eq!(
                    bench.held(who, tier, &[], script).status.code(),
                    Some(code),
                    "{who:?} {tier}: {script}"
                );
            }
            let mark = format!("{}{}", 600, bench.values[2].1);
            let stays = format!(
                "(setsid sleep {mark} >/dev/null 2>&1 &); sleep {mark} >/dev/null 2>&1 & setsid -f sleep {mark}; sleep 0.2"
            );
            assert!(bench.held(who, tier, &[], &stays).status.success());
            assert!(!is_running(&mark), "{who:?} {tier}");
            // What was put in the place of protected folders has gone again.
            let mut names: Vec<_> = fs::read_dir(bench.base.join("work"))
                .expect("the test can do this")
                .map(|it| {
                    it.expect("the test can do this")
                        .file_name()
                        .into_string()
                        .expect("the test can do this")
                })
                .filter(|it| it.starts_with('.'))
                .collect();
            names.sort();
            assert_eq!(
                names,
                [
                    ".claude",
                    ".cursor",
                    ".env",
                    ".git",
                    ".gitignore",
                    ".husky",
                    ".sheafignore"
                ],
                "{who:?} {tier}"
            );
        }
    }
    // Without the sandbox the same stays: the harness sees it.
    let bench = Bench::new(ourselves());
    let mark = format!("{}{}", 601, bench.values[2].1);
    assert!(bench.plain(ourselves(), &format!("setsid -f sleep {mark} >/dev/null 2>&1")));
    let is_seen = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        sleepers(&mark) > 0
    });
    assert!(is_seen, "what stays without a sandbox is seen");
    Command::new("pkill")
        .args(["-xf", &format!("sleep {mark}")])
        .status()
        .ok();
}

/// Processes that left their group and threw their environment away end with the program, however it ends. What changes later
/// is the user's, and the next program tells one from the other.
#[test]
fn a_program_that_ends_leaves_no_process_and_the_next_one_knows_what_was_its_own() {
    for who in attackers() {
        for (tier, is_killed) in [("full", true), ("full", false), ("partial", true), ("partial", false)] {
            if tier == "full" && !can_unshare(who) {
                continue;
            }
            let bench = Bench::new(who);
            let work = bench.base.join("work");
            for folder in ["free", "vault"] {
                fs::create_dir(work.join(folder)).expect("the test can do this");
            }
            own(&bench, who);
            // Nobody can look into it; the rest is known all the same.
            let vault = work.join("vault");
            fs::set_permissions(&vault, fs::Permissions::from_mode(0o000)).expect("the test can do this");
            let model = Model::start();
            let start = || {
                let mut command = bench.command(who, env!("CARGO_BIN_EXE_sheaf"));
                command
                    .args(["-p", "--no-session", "go on"])
                    .env("OPENAI_BASE_URL", &model.url)
                    .env("OPENAI_API_KEY", "sk-attacked-0123456789")
                    .env("OPENAI_MODEL", "scripted")
                    .env("SHEAF_SANDBOX_AT_MOST", tier)
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped());
                command.spawn().expect("the test can do this")
            };
            let mut child = start();
            let mark = format!("{}{}", 602, bench.values[2].1);
            let stays = format!(
                "echo evil > free/.mcp.json; (env -i setsid -f sleep {mark} >/dev/null 2>&1); env -i bash -c 'sleep {mark} & wait' & \
                 sleep 600"
            );
            let run = json!({ "command": stays, "is_background": !is_killed });
            model.asked().calls(&[("run_terminal_cmd", run)]);
            until("both sleep", || sleepers(&mark) == 2);
            if is_killed {
                child.kill().expect("it runs");
                child.wait().expect("it is dead");
            } else {
                let answer = model.asked();
                answer.says("Well.");
                answer.finish();
                assert!(
                    child.wait_with_output().expect("it ends").status.success(),
                    "{who:?} {tier}"
                );
            }
            until(&format!("none of {who:?} is left, {tier}, killed: {is_killed}"), || {
                sleepers(&mark) == 0
            });
            let lists = || -> Vec<PathBuf> {
                let aside = bench.base.join("home/.local/state/sheaf/aside");
                let files = fs::read_dir(aside).into_iter().flatten().flatten().map(|it| it.path());
                files.filter(|it| it.to_string_lossy().contains("/running-")).collect()
            };
            if !is_killed {
                until("nothing is left to be looked at", || lists().is_empty());
                assert!(!work.join("free/.mcp.json").exists(), "{who:?} {tier}");
                fs::set_permissions(&vault, fs::Permissions::from_mode(0o755)).expect("the test can do this");
                continue;
            }
            let is_end = |it: &PathBuf| it.extension().is_some_and(|it| it == "end");
            until("the end is noted", || lists().iter().any(is_end));
            let modified = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).expect("it is there");
            let end = lists().iter().find(|it| is_end(it)).map(|it| modified(it));
            // The clock of files ticks slowly.
            until("something is newer", || {
                fs::write(bench.base.join("clock"), "").expect("the test can do this");
                Some(modified(&bench.base.join("clock"))) > end
            });
            fs::create_dir(work.join("mine")).expect("the test can do this");
            fs::write(work.join("mine/.envrc"), "mine").expect("the test can do this");
            let child = start();
            let answer = model.asked();
            assert!(
                !work.join("free/.mcp.json").exists(),
                "it is put aside before the model is asked"
            );
            answer.says("Well.");
            answer.finish();
            let output = child.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("free/.mcp.json →"), "{who:?} {tier}: {said}");
            assert!(
                said.contains("`mine/.envrc` is new or changed since the command ended"),
                "{who:?} {tier}: {said}"
            );
            assert!(
                work.join("mine/.envrc").exists() && lists().is_empty(),
                "{who:?} {tier}: {said}"
            );
        }
    }
}

/// How many processes sleep for so long.
fn sleepers(mark: &str) -> usize {
    let wanted = format!("sleep\0{mark}\0");
    let is_one = |it: &fs::DirEntry| {
        let mut line = Vec::new();
        let read = fs::File::open(it.path().join("cmdline")).and_then(|mut it| it.read_to_end(&mut line));
        read.is_ok() && line == wanted.as_bytes()
    };
    fs::read_dir("/proc")
        .expect("the test can do this")
        .flatten()
        .filter(is_one)
        .count()
}

/// Whether one is left when those that are dying have had a moment.
fn is_running(mark: &str) -> bool {
    (0..100).all(|_| {
        std::thread::sleep(Duration::from_millis(5));
        sleepers(mark) > 0
    })
}

#[test]
fn without_a_sandbox_nothing_is_run_in_it() {
    let bench = Bench::new(ourselves());
    let output = bench.held(ourselves(), "none", &[], "touch ran");
    assert_eq!(output.status.code(), Some(3));
    assert!(!bench.base.join("work/ran").exists());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("no sandbox") && said.contains("sheaf sandbox explain"),
        "{said}"
    );
    let mut explain = bench.command(ourselves(), env!("CARGO_BIN_EXE_sheaf"));
    let explained = explain
        .args(["sandbox", "explain", "--sandbox", "off"])
        .output()
        .expect("the test can do this");
    assert_eq!(explained.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&explained.stdout).contains("NO SANDBOX: switched off by --sandbox off"));
}

/// What a model asks of the tools for files, and whether it may have it.
fn file_attacks(bench: &Bench) -> Vec<(&'static str, &'static str, Value, bool)> {
    let (out, home) = (bench.fill("@OUT@"), bench.fill("@HOME@"));
    let write = |path: String| json!({ "file_path": path, "contents": "evil" });
    let read = |path: String| json!({ "target_file": path });
    vec![
        // The controls.
        ("write a file", "write", write("new.txt".to_owned()), true),
        ("read a file", "read_file", read("a.txt".to_owned()), true),
        ("search", "grep", json!({ "pattern": "x", "path": "a.txt" }), true),
        ("write outside", "write", write(format!("{out}/new")), false),
        ("write outside by steps", "write", write("../out/new".to_owned()), false),
        ("write through a link", "write", write("out-link/new".to_owned()), false),
        ("write to the home", "write", write("~/.bashrc".to_owned()), false),
        (
            "write by way of a process",
            "write",
            write(format!("/proc/self/root{out}/new")),
            false,
        ),
        ("a hook", "write", write(".git/hooks/pre-commit".to_owned()), false),
        (
            "a hook in capitals",
            "write",
            write(".GIT/hooks/pre-commit".to_owned()),
            false,
        ),
        (
            "git's configuration",
            "search_replace",
            json!({ "file_path": ".git/config", "old_string": "core", "new_string": "evil" }),
            false,
        ),
        (
            "an editor's tasks",
            "write",
            write(".vscode/tasks.json".to_owned()),
            false,
        ),
        ("servers for tools", "write", write(".mcp.json".to_owned()), false),
        (
            "what a protected link leads to",
            "write",
            write("linked/new.json".to_owned()),
            false,
        ),
        (
            "what a protected link below the top leads to",
            "write",
            write("ci/evil.yml".to_owned()),
            false,
        ),
        (
            "what a link with the name of a secret leads to",
            "read_file",
            read("devvars".to_owned()),
            false,
        ),
        (
            "search it",
            "grep",
            json!({ "pattern": "KEY", "path": "devvars" }),
            false,
        ),
        (
            "search where it is",
            "grep",
            json!({ "pattern": "KEY=", "path": "." }),
            true,
        ),
        (
            "what a hook of git's leads to",
            "write",
            write("scripts/rebase.sh".to_owned()),
            false,
        ),
        (
            "a hook where a link says that hooks are",
            "write",
            write("nested/hooks/pre-push".to_owned()),
            false,
        ),
        (
            "through a protected link",
            "write",
            write(".claude/settings.json".to_owned()),
            false,
        ),
        (
            "our own settings",
            "write",
            write(".sheaf/config.toml".to_owned()),
            false,
        ),
        (
            "remove outside",
            "delete_file",
            json!({ "target_file": format!("{out}/victim") }),
            false,
        ),
        (
            "a patch outside",
            "apply_patch",
            json!({ "patch": format!("*** Begin Patch\n*** Add File: {out}/new\n+evil\n*** End Patch\n") }),
            false,
        ),
        ("read a secret", "read_file", read(".env".to_owned()), false),
        (
            "read a secret through a link",
            "read_file",
            read("env-link".to_owned()),
            false,
        ),
        (
            "read a key",
            "read_file",
            read(format!("{home}/.ssh/id_ed25519")),
            false,
        ),
        (
            "read the environment",
            "read_file",
            read("/proc/self/environ".to_owned()),
            false,
        ),
        (
            "search a secret",
            "grep",
            json!({ "pattern": "secret", "path": ".env" }),
            false,
        ),
        (
            "search a folder of keys",
            "grep",
            json!({ "pattern": "secret", "path": format!("{home}/.ssh") }),
            false,
        ),
        (
            "list a folder of keys",
            "list_dir",
            json!({ "target_directory": format!("{home}/.ssh") }),
            false,
        ),
        (
            "read what an ignore file names",
            "read_file",
            read("private/plan.txt".to_owned()),
            false,
        ),
        ("a device", "read_file", read("/dev/zero".to_owned()), false),
        (
            "a server of this machine",
            "web_fetch",
            json!({ "url": bench.fill("http://127.0.0.1:@TCP@/") }),
            false,
        ),
        (
            "everything",
            "run_terminal_cmd",
            json!({ "command": "true", "is_background": false, "required_permissions": ["all"] }),
            false,
        ),
        (
            "a network",
            "run_terminal_cmd",
            json!({ "command": "true", "is_background": false, "required_permissions": ["network"] }),
            false,
        ),
        (
            "a folder elsewhere",
            "run_terminal_cmd",
            json!({ "command": "true", "is_background": false, "working_directory": out }),
            false,
        ),
    ]
}

#[test]
fn a_model_that_attacks_gets_nowhere() {
    for who in attackers() {
        if !can_unshare(who) {
            say(&format!(
                "\nSKIPPED: {who:?}: no namespaces, so a model runs no command without a question\n"
            ));
            continue;
        }
        let bench = Bench::new(who);
        let work = bench.base.join("work");
        for (path, text) in [
            ("ci/build.yml", "x"),
            ("devvars", "KEY=secret"),
            (".github/x", "x"),
            ("scripts/rebase.sh", "x"),
            ("nested/.git/HEAD", "ref: refs/heads/x"),
            ("nested/hooks/x", ""),
        ] {
            fs::create_dir_all(work.join(path).parent().expect("the test can do this")).expect("the test can do this");
            fs::write(work.join(path), text).expect("the test can do this");
        }
        for (link, target) in [
            ("out-link", "../out"),
            ("env-link", ".env"),
            // Below the top, by what they are called.
            (".github/workflows", "../ci"),
            ("sub/.env", "../devvars"),
            (".git/hooks/pre-rebase", "../../scripts/rebase.sh"),
            ("nested/.git/hooks", "../hooks"),
        ] {
            std::os::unix::fs::symlink(target, work.join(link)).expect("the test can do this");
        }
        own(&bench, who);
        let model = Model::start();
        let mut command = bench.command(who, env!("CARGO_BIN_EXE_sheaf"));
        command
            .args(["-p", "--no-session", "go on"])
            .env("OPENAI_BASE_URL", &model.url)
            .env("OPENAI_API_KEY", "sk-attacked-0123456789")
            .env("OPENAI_MODEL", "scripted")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().expect("the test can do this");
        let calls = file_attacks(&bench);
        let asked: Vec<(&str, Value)> = calls.iter().map(|it| (it.1, it.2.clone())).collect();
        model.asked().calls(&asked);
        let answer = model.asked();
        let results = answer.results();
        assert_eq!(results.len(), calls.len(), "{results:?}");
        for ((name, _, _, may), result) in calls.iter().zip(&results) {
            assert_eq!(!result.starts_with("Error ["), *may, "{who:?}: {name}: {result}");
        }
        // All attacks on commands, the same way; the line is long, so it is a script.
        fs::write(work.join("attacks.sh"), bench.fill(&script())).expect("the test can do this");
        let run = json!({ "command": "bash attacks.sh", "is_background": false, "timeout_ms": 300_000 });
        answer.calls(&[("run_terminal_cmd", run)]);
        let answer = model.asked();
        let said = answer.results().concat();
        let found = read_results(&said);
        assert_eq!(found.len(), ATTACKS.len(), "{said}");
        let broken: Vec<_> = found.iter().filter(|it| *it.1).map(|it| it.0.as_str()).collect();
        assert_eq!(broken, Vec::<&str>::new(), "{who:?}");
        let sent = answer.request.to_string();
        assert!(!sent.contains("KEY=secret") && !sent.contains("sk-attacked"), "{sent}");
        answer.says("Well.");
        answer.finish();
        let output = child.wait_with_output().expect("it ends");
        // Something was asked for that nobody could allow.
        assert_eq!(
            output.status.code(),
            Some(4),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        for planted in [
            "work/.vscode",
            "work/.mcp.json",
            "work/.sheaf",
            "work/linked/new.json",
            "work/ci/evil.yml",
            "work/nested/hooks/pre-push",
            "out/new",
            "home/.bashrc",
        ] {
            assert!(!bench.base.join(planted).exists(), "{who:?}: {planted}");
        }
        assert!(bench.base.join("out/victim").exists());
        assert!(!work.join(".git/hooks/pre-commit").exists());
    }
}
