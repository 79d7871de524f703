//! Names that mean something to tools, to git and to this program.
//!
//! They are compared folded: file systems that do not tell upper from lower case, or that compose and skip characters, would
//! let a name pass by another spelling.

use std::{
    collections::HashMap,
    ffi::OsStr,
    path::{Component, Path},
    sync::LazyLock,
};

use crate::text::WordList;
use unicode_normalization::UnicodeNormalization;

/// Folders whose content runs or decides what runs, by the names that lead there: of git, of this program, of other agents, of
/// editors, of build tools and their hooks, of services that build, and of the shell and the session where the home is the workspace.
///
/// What a shell, an editor, an agent, git or a tool that these start (a linter, a formatter, a language server, the manager of a
/// version) runs or obeys by itself is in these lists. What a build or a test that somebody starts reads (`Makefile`, `build.rs`,
/// `vite.config.ts`, `conftest.py`) is not: else most changes of a project would ask.
const FOLDERS: WordList = WordList(
    ".git .sheaf .cursor .claude .vscode .idea .husky .ssh .gnupg .config/sheaf .config/git .config/fish
     .local/share/sheaf .local/state/sheaf .github/workflows .github/actions .gitea/workflows .forgejo/workflows
     .gitlab/ci .circleci .buildkite .woodpecker
     .agents .amazonq .augment .cline .clinerules .codex .continue .crush .gemini .goose .junie .kilocode .kiro .opencode .qwen
     .roo .trae .windsurf .config/amp .config/crush .config/goose .config/opencode .copilot .github/hooks
     .devcontainer .emacs.d .fleet .helix .nvim .vim .vs .zed .config/emacs .config/helix .config/kak .config/micro .config/nvim
     .config/vim .config/zed .idx .theia
     .githooks .git-hooks .lefthook .mise .mvn .yarn/plugins .yarn/releases .config/mise .config/direnv .config/pip .config/npm
     .azure-pipelines .semaphore .teamcity .tekton
     .config/autostart .config/environment.d .config/nushell .config/powershell .config/systemd .config/zsh .config/bash
     .config/tmux .config/wezterm .config/kitty .config/alacritty .local/share/systemd library/launchagents
     .config/foot .config/ghostty .config/zellij .config/elvish .config/xonsh .elvish .byobu .tmux
     .config/awesome .config/bspwm .config/herbstluftwm .config/hypr .config/i3 .config/openbox .config/plasma-workspace
     .config/qtile .config/sway .config/sxhkd .config/xmonad .xmonad .i3 .local/share/applications .local/share/dbus-1
     .bash_completion.d .bashrc.d .zsh .zshrc.d .profile.d .oh-my-zsh .bash_it .local/share/bash-completion
     .local/share/fish .local/share/nvim .local/share/zsh .config/ipython .ipython .jupyter .julia/config
     sitecustomize usercustomize .config/hg .config/jj .config/sapling .gradle/init.d .docker/cli-plugins
     .bsp .flox .lapce .nlsp-settings .nova .sourcekit-lsp .swiftpm .trunk .ctags.d .terraform.d
     .config/containers .config/lazygit .config/uv .config/yarn .config/pnpm .config/mpv .config/ranger .config/lf
     .config/yazi .agent .antigravity .codebuddy .direnv .factory .openhands .rovodev .warp
     .local/bin .cargo/bin .bun/bin .deno/bin .dotnet/tools .volta/bin .krew/bin .asdf/shims .nodenv/shims .pyenv/shims
     .rbenv/shims .local/share/mise/shims .local/share/pnpm .nix-profile",
);

/// Folders in those that hold plans for people to read.
const FREE: WordList = WordList(".sheaf/plans .cursor/plans");

/// Folders of packages that others wrote, where such files lie about and nobody works: only git's count there.
pub const PACKAGES: WordList = WordList("node_modules site-packages");

/// Folders of other people's packages that are kept with the sources or built from them.
const VENDORED: WordList = WordList("vendor vendored third_party third-party bower_components pods carthage");

/// Names that git and this program act on, wherever they are. The others matter to whoever works in their folder.
const ACTING: WordList = WordList(".git .sheaf .cursor .claude .mcp.json mcp.json .sheafignore .cursorignore");

/// Files of the same kind, by the names that lead there. A `*` at the start or the end stands for anything.
const FILES: WordList = WordList(
    ".mcp.json mcp.json *.code-workspace .gitmodules .gitattributes .gitconfig .envrc .env* .sheafignore
     .cursorignore .cursorindexingignore .gitlab-ci.yml .travis.yml .woodpecker.yml .bashrc .bash_profile .bash_login
     .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login
     .inputrc .xprofile .ripgreprc
     .aider.conf.yml .aiderignore .aiexclude .aiignore .claude.json .clineignore .codeiumignore .continuerc.json .crush.json
     .cursorrules .geminiignore .goosehints .kiloignore .opencode.json .opencode.jsonc .rooignore .roomodes .roorules
     .windsurfignore .windsurfrules crush.json opencode.json opencode.jsonc
     .dir-locals.el .dir-locals-2.el .emacs .exrc .gvimrc .helix.toml .lvimrc .nvim.lua .nvimrc .projectile .vimrc .virc
     .devcontainer.json .gitpod.yml .gitpod.yaml .replit
     .gdbinit .gdbearlyinit .lldbinit .pdbrc .ghci .irbrc .pryrc .ocamlinit .psqlrc .sqliterc .rprofile .renviron .pythonrc
     .pythonstartup.py sitecustomize.py usercustomize.py
     .bazelrc .user.bazelrc .cargo/config .cargo/config.toml .bundle/config .gemrc .npmrc .pnpmfile.cjs .yarnrc .yarnrc.yml
     .pip/pip.conf .curlrc .wgetrc .sbtopts .jvmopts
     .mise.toml .mise.local.toml mise.toml mise.local.toml .rtx.toml .tool-versions .autoenv .autoenv.zsh
     .pre-commit-config.yaml .pre-commit-config.yml .overcommit.yml .lefthook.yml .lefthook.yaml .lefthook.toml
     .lefthook-local.yml lefthook.yml lefthook.yaml lefthook.toml lefthook-local.yml
     .appveyor.yml appveyor.yml .cirrus.yml .drone.yml .gitlab-ci.yaml .woodpecker.yaml azure-pipelines.yml
     bitbucket-pipelines.yml jenkinsfile
     .screenrc .tmux.conf .wezterm.lua .xinitrc .xsession .xsessionrc .pam_environment .forward
     .tmux.conf.local .xserverrc .xbindkeysrc .xresources .xdefaults .config/starship.toml .config/mimeapps.list
     .mailcap .mailrc .procmailrc .rhosts .shosts .k5login .lessfilter .lesskey
     .hgrc .hg/hgrc .hg/hgrc-not-shared .jj/repo/config.toml .jj/config.toml .jj/workspace-config.toml .jjconfig.toml
     .sl/config .slconfig .bzr/branch/branch.conf _darcs/prefs/defaults .pijul/config .gitconfig.local
     .bash_completion .bash_env .bash_functions .bash_prompt .bashrc.local .zshrc.local .zpreztorc .zimrc .p10k.zsh
     .mkshrc .shrc .shinit .xonshrc .aliases .exports .functions .direnvrc .autoenv.sh .asdfrc
     .emacs.el .emacs.elc .gnus.el .spacemacs .local.vimrc .vimrc.local .vimrc.lua _vimrc _gvimrc .ideavimrc .kakrc
     .nanorc .joerc
     .bpython .clisprc .duckdbrc .erlang .guile .iex.exs .mongorc.js .mongoshrc.js .octaverc .perldb .proverc .pythonrc.py
     .racketrc .rdbgrc .byebugrc .sbclrc .ackrc
     .lintstagedrc* lint-staged.config.* .huskyrc* .simple-git-hooks.* simple-git-hooks.* captainhook.json
     grumphp.yml .rusty-hook.toml prek.toml .pre-commit-hooks.yaml lefthook.json .lefthook.json lefthook-local.yaml
     lefthook-local.toml lefthook-local.json .lefthook-local.yaml .lefthook-local.toml .lefthook-local.json
     .buckconfig .buckconfig.local .pnpmfile.mjs .bunfig.toml bunfig.toml .pydistutils.cfg .condarc .sbtrc
     .gradle/init.gradle .gradle/init.gradle.kts .m2/extensions.xml .sdkmanrc .drone.yaml .cirrus.star
     .github/copilot-instructions.md .clangd .luarc.json .luarc.jsonc .mocharc.* .rspec
     rust-toolchain rust-toolchain.toml .bazelversion .bazeliskrc .pants.rc .rvmrc .rbenv-vars .powrc .powenv .localrc .ondirrc
     .ansible.cfg ansible.cfg .terraformrc terraform.rc .tofurc .tflint.hcl
     compose.override.yml compose.override.yaml docker-compose.override.yml docker-compose.override.yaml
     gradle.properties gradle-wrapper.properties gradle-daemon-jvm.properties .m2/settings.xml
     directory.build.props directory.build.targets directory.build.rsp directory.packages.props directory.solution.props
     directory.solution.targets msbuild.rsp global.json nuget.config omnisharp.json .config/dotnet-tools.json
     .eslintrc* eslint.config.* .prettierrc* prettier.config.* .stylelintrc* stylelint.config.* .commitlintrc* commitlint.config.*
     .xo-config.* xo.config.* tslint.json .remarkrc* .textlintrc* .markdownlint.cjs .markdownlint-cli2.* .gitlint
     .pylintrc .pylintrc.toml pylintrc pylintrc.toml .flake8 mypy.ini .mypy.ini .rubocop.yml .rubocop_todo.yml .standard.yml
     .solargraph.yml .erb-lint.yml .golangci.* phpstan.neon* .php-cs-fixer.php .php-cs-fixer.dist.php .phpactor.json
     .phpactor.yml psalm.xml psalm.xml.dist .credo.exs .formatter.exs .merlin hie.yaml .lsp/config.edn .juliarc.jl
     renv/activate.r startup.m .gnuplot .muttrc .tigrc .lazygit.yml .ctags .tm_properties .kateproject .neoconf.json
     .ycm_extra_conf.py .factorypath *.sublime-project hk.pkl .hk.pkl hk.toml cog.toml",
);

/// Folders at the top of a workspace whose mere existence means something.
pub fn top_folders() -> impl Iterator<Item = &'static str> {
    const MATTER: [&str; 7] = [".git", ".sheaf", ".cursor", ".claude", ".vscode", ".idea", ".husky"];
    MATTER.into_iter()
}

/// Names of files that are protected wherever they are, without those with a `*`.
pub fn plain_files() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter(|it| !it.contains('*'))
}

/// A name as the most forgiving file system would compare it.
pub fn folded(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    if name.bytes().all(|it| it.is_ascii()) {
        return name.to_ascii_lowercase();
    }
    name.chars()
        .filter(|it| !is_skipped(*it))
        .nfc()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .nfc()
        .collect()
}

/// Characters that HFS+ does not compare.
fn is_skipped(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// The names of a path, folded.
pub fn parts(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|it| match it {
            Component::Normal(name) => Some(folded(name)),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect()
}

pub fn is_git(name: &OsStr) -> bool {
    folded(name) == ".git"
}

/// Returns true if a path leads into git's own folder, or is the file that stands for it.
pub fn leads_to_git(path: &Path) -> bool {
    parts(path).iter().any(|it| it == ".git")
}

/// Returns true if every change of the file at this path asks.
pub fn is_protected(path: &Path) -> bool {
    let parts = parts(path);
    let package = parts.iter().rposition(|it| PACKAGES.iter().any(|name| name == it));
    match package {
        // What lies in a package is looked at by itself, and so is the way to it.
        Some(at) if at + 1 < parts.len() => {
            is_named(parts.get(..at).unwrap_or_default()) || parts.iter().skip(at).any(|it| it == ".git")
        }
        Some(_) | None => is_named(&parts),
    }
}

/// Returns true for a folder of packages that others wrote, or one in it.
pub fn is_vendored(folder: &Path) -> bool {
    let mut all = VENDORED.iter().chain(PACKAGES.iter());
    let parts = parts(folder);
    all.any(|name| parts.iter().any(|it| it == name))
}

/// Returns true if git or this program acts on the file or folder at a protected path, whoever works there.
pub fn is_acting(path: &Path) -> bool {
    parts(path).iter().any(|it| ACTING.iter().any(|name| name == it))
}

/// Returns true if an entry of this name may be protected in a folder that is not: most names of a walk are none of these.
pub fn is_telling(name: &OsStr) -> bool {
    let name = folded(name);
    let is_in = |index: &Index| index.whole.contains_key(name.as_str());
    is_in(&FILE_INDEX)
        || is_in(&FOLDER_INDEX)
        || FILE_INDEX.parts.iter().any(|it| is_like(it, &name))
        || PACKAGES.contains(&name)
}

fn is_named(parts: &[String]) -> bool {
    let is_file = FILE_INDEX.ends(parts);
    // A plan is free, and a folder of tools that hides in the folder of plans is not.
    let tools = FOLDER_INDEX.count(parts);
    let is_free = tools == 1 && FREE_INDEX.count(parts) > 0 && !parts.iter().any(|it| it == ".git");
    is_file || (tools > 0 && !is_free)
}

/// A list by the last names of its entries: a walk asks for each file of a tree.
struct Index {
    /// The names that lead to the last one, which is the key.
    whole: HashMap<&'static str, Vec<Vec<&'static str>>>,
    /// Names with a `*`, which stand alone.
    parts: Vec<&'static str>,
}

static FOLDER_INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(FOLDERS));
static FREE_INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(FREE));
static FILE_INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(FILES));

impl Index {
    fn new(list: WordList) -> Self {
        let (parts, names): (Vec<_>, Vec<_>) = list.iter().partition(|it| it.contains('*'));
        let mut whole: HashMap<_, Vec<Vec<_>>> = HashMap::new();
        for name in names {
            let mut way: Vec<_> = name.split('/').collect();
            if let Some(last) = way.pop() {
                whole.entry(last).or_default().push(way);
            }
        }
        Self { whole, parts }
    }

    /// Returns true if a path ends in an entry.
    fn ends(&self, parts: &[String]) -> bool {
        let Some((last, before)) = parts.split_last() else {
            return false;
        };
        self.ways(last, before) > 0 || self.parts.iter().any(|it| is_like(it, last))
    }

    /// Counts how often entries are on the way.
    fn count(&self, parts: &[String]) -> usize {
        let at = parts.iter().enumerate();
        at.map(|(at, name)| self.ways(name, parts.get(..at).unwrap_or_default()))
            .sum()
    }

    /// Number of entries that end in `last` and whose other names are the last of `before`.
    fn ways(&self, last: &str, before: &[String]) -> usize {
        let leads = |way: &&Vec<&str>| {
            let rest = before.len().checked_sub(way.len()).and_then(|it| before.get(it..));
            rest.is_some_and(|it| it.iter().eq(way.iter()))
        };
        self.whole.get(last).map_or(0, |it| it.iter().filter(leads).count())
    }
}

/// The same as regular expressions for a sandbox that holds names by their text, whether they exist or not: what is
/// protected at any depth, and the parts of that which are free again. Without git's own folder where `git_write` opens it,
/// but with what runs or decides what runs in it.
#[cfg(any(test, target_os = "macos"))]
pub fn patterns(git_write: bool, fixed: &[&str]) -> (Vec<String>, Vec<String>) {
    // Names that mean themselves, in any case.
    let literal = |name: &str| {
        name.chars()
            .map(|it| match it {
                '*' => "[^/]*".to_owned(),
                it if it.is_ascii_alphabetic() => {
                    format!("[{}{}]", it.to_ascii_lowercase(), it.to_ascii_uppercase())
                }
                it if it.is_ascii_digit() || it == '_' || it == '-' => it.to_string(),
                it => format!("[{it}]"),
            })
            .collect::<String>()
    };
    let path = |folder: &str| folder.split('/').map(literal).collect::<Vec<_>>().join("/");
    let folders = FOLDERS.iter().filter(|it| !git_write || *it != ".git");
    let mut held: Vec<String> = folders.map(|it| format!("/{}(/|$)", path(it))).collect();
    if git_write {
        let inside = fixed
            .iter()
            .map(|it| format!("/{}/(.*/)?{}(/|$)", literal(".git"), literal(it)));
        held.extend(inside);
    }
    // Variables of a project are set up by commands every day.
    let files = FILES.iter().filter(|it| *it != ".env*");
    held.extend(files.map(|it| format!("/{}$", literal(it))));
    (
        held,
        FREE.iter().map(|it| format!("/{}/[^.][^/]*$", path(it))).collect(),
    )
}

fn is_like(pattern: &str, name: &str) -> bool {
    if let Some(end) = pattern.strip_prefix('*') {
        name.ends_with(end)
    } else if let Some(start) = pattern.strip_suffix('*') {
        name.starts_with(start)
    } else {
        name == pattern
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_or_decides_what_runs_is_protected_in_any_spelling() {
        for (path, expected) in [
            ("src/main.rs", false),
            ("README.md", false),
            (".gitignore", false),
            (".github/ISSUE_TEMPLATE.md", false),
            (".github/workflows/ci.yml", true),
            (".GitHub/Workflows/ci.yml", true),
            (".git/hooks/pre-commit", true),
            ("sub/.git/config", true),
            (".git", true),
            (".gIt/config", true),
            (".g\u{200c}it/config", true),
            (".cursor/mcp.json", true),
            (".cursor/rules/style.mdc", true),
            (".Cursor/MCP.json", true),
            (".cur\u{17f}or/mcp.json", true),
            (".vscode/tas\u{212a}s.json", true),
            (".cursor/plans/tidy-up.plan.md", false),
            (".sheaf/plans/tidy-up.plan.md", false),
            (".sheaf/plans/.cursor/mcp.json", true),
            (".cursor/plans/.git/config", true),
            (".cursor/plansible.md", true),
            ("sub/.cargo/config.toml", true),
            (".cargo/registry", false),
            ("config.toml", false),
            (".config/git/ignore", true),
            ("a/b/.config/nvim/init.lua", true),
            (".Codex/config.toml", true),
            (".zed/tasks.json", true),
            ("a/.devcontainer/devcontainer.json", true),
            (".npmrc", true),
            (".pre-commit-config.yaml", true),
            ("deep/.exrc", true),
            (".gdbinit", true),
            (".mise.toml", true),
            ("Jenkinsfile", true),
            (".Rprofile", true),
            ("node_modules/x/.travis.yml", false),
            ("node_modules/.npmrc", false),
            ("node_modules/x/.git/config", true),
            (".vscode/node_modules/x", true),
            (".config/nvim/node_modules/x", true),
            ("a/site-packages/x/.vscode", false),
            ("node_modules", false),
            (".sheaf/config.toml", true),
            ("mcp.json", true),
            ("a/b/.mcp.json", true),
            ("shop.code-workspace", true),
            (".env.local", true),
            (".envrc", true),
            (".bashrc", true),
            (".config/sheaf/config.toml", true),
            (".config/other/config.toml", false),
            ("config/sheaf/config.toml", false),
            (".sheafignore", true),
            ("deep/.cursorignore", true),
            (".husky/pre-commit", true),
            ("git/hooks", false),
            ("", false),
        ] {
            assert_eq!(is_protected(Path::new(path)), expected, "{path}");
        }
    }

    /// Names that people keep in their home or in a repository, each with a path in it, written down a second time.
    const HELD: &str = "
        .hg/hgrc, .hgrc, .config/hg/hgrc, .jj/repo/config.toml, .jjconfig.toml, .config/jj/conf.d/a.toml, .sl/config,
        .bzr/branch/branch.conf, _darcs/prefs/defaults, .local/bin/git, .cargo/bin/cargo, .pyenv/shims/python, .rhosts,
        .shosts, .k5login, .bash_completion, .bash_completion.d/x, .bashrc.d/x, .profile.d/x, .zshrc.local,
        .oh-my-zsh/custom/x.zsh, .config/fish/config.fish, .local/share/fish/vendor_conf.d/x.fish, .config/autostart/x.desktop,
        .config/systemd/user/x.service, .local/share/systemd/user/x.service, .local/share/applications/x.desktop,
        .config/environment.d/x.conf, .config/plasma-workspace/env/x.sh, .config/i3/config, .config/sway/config,
        .config/starship.toml, .profile, .bash_profile, .bash_login, .zprofile, .zlogin, .xprofile, .xserverrc, .inputrc,
        .pythonrc, .pythonrc.py, .ipython/profile_default/startup/a.py, sitecustomize.py, sitecustomize/__init__.py,
        usercustomize.py, .envrc, .direnvrc, .tool-versions, .asdfrc, lefthook.yml, lefthook.json, .husky/pre-commit,
        .huskyrc.json, .lintstagedrc, .lintstagedrc.json, lint-staged.config.mjs, .simple-git-hooks.json, prek.toml, .vimrc,
        .vim/plugin/x.vim, .vimrc.local, .local.vimrc, .local/share/nvim/site/plugin/x.lua, .nvimrc, .nvim.lua, .exrc, .emacs,
        .emacs.el, .spacemacs, .dir-locals.el, .ideavimrc, .tmux.conf, .tmux/plugins/x, .tmux.conf.local, .screenrc,
        .mailcap, .procmailrc, .forward, .lessfilter, .iex.exs, .mongoshrc.js, .sbclrc, bunfig.toml, .gradle/init.d/x.gradle,
        .docker/cli-plugins/docker-x, .buckconfig, rust-toolchain, rust-toolchain.toml, .pylintrc, pylintrc, .flake8, mypy.ini,
        .eslintrc, .eslintrc.json, .eslintrc.cjs, eslint.config.mjs, .prettierrc, .prettierrc.js, prettier.config.cjs,
        .stylelintrc.json, stylelint.config.js, .commitlintrc.yml, commitlint.config.ts, .rubocop.yml, .php-cs-fixer.dist.php,
        Directory.Build.props, Directory.Build.targets, Directory.Packages.props, NuGet.config, global.json, ansible.cfg,
        .terraformrc, .tflint.hcl, docker-compose.override.yml, compose.override.yaml, gradle.properties,
        gradle/wrapper/gradle-wrapper.properties, .yarnrc.yml, .pnpmfile.cjs, .bsp/x.json, .factorypath, shop.sublime-project,
        hie.yaml, .merlin, .rvmrc, .bazelversion, .trunk/trunk.yaml, hk.pkl
    ";

    #[test]
    fn what_takes_effect_by_itself_in_a_home_or_a_repository_is_protected() {
        let names = HELD.split([',', '\n']).map(str::trim).filter(|it| !it.is_empty());
        let open: Vec<_> = names
            .filter(|it| !is_protected(Path::new(it)) || !is_protected(&Path::new("a/b").join(it)))
            .collect();
        assert_eq!(open, Vec::<&str>::new());
        for open in [
            ".hg/store/data",
            ".jj/repo/op_store/x",
            ".local/lib/x",
            "bin/tool",
            "lint-staged/config.rs",
            "config/fish",
            "src/functions",
            "package.json",
            "pyproject.toml",
            "Cargo.toml",
            "Makefile",
            "build.rs",
            "conftest.py",
            ".babelrc",
            "vite.config.ts",
            "vitest.config.ts",
            "jest.config.js",
            "tsconfig.json",
            "docker-compose.yml",
            "eslint/config.js",
            "src/prettier.rs",
            "build.gradle",
            "setup.cfg",
            "shop.csproj",
        ] {
            assert!(!is_protected(Path::new(open)), "{open}");
        }
    }
}
