//! A home, a workspace and a scripted model for the real binary, in a folder that its sandbox sees.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;

use crate::mock_model::Model;

/// The folders `home` and `work`, and a model.
pub struct Bench {
    pub folder: tempfile::TempDir,
    pub model: Model,
}

impl Bench {
    /// `files`: the paths and texts of files in the workspace.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let bench = Self {
            // Hooks of the home run in it, and the sandbox has a /tmp of its own.
            folder: tempfile::tempdir_in(crate::scratch()).expect("a folder"),
            model: Model::start(),
        };
        for (path, text) in files {
            bench.write(&format!("work/{path}"), text);
        }
        // Else it would belong to the repository of sheaf itself, which is around it.
        let made = Command::new("git")
            .args(["init", "-q"])
            .arg(bench.path("work"))
            .status();
        assert!(made.expect("git").success(), "a repository");
        bench
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file; a script may be executed.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(&path, text).expect("a file");
        if path.extension().is_some_and(|it| it == "sh") {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|it| panic!("{path}: {it}"))
    }

    /// The program in the workspace.
    pub fn sheaf(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sheaf"));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .env("OPENAI_BASE_URL", &self.model.url)
            .env("OPENAI_API_KEY", "sk-test")
            .env("OPENAI_MODEL", "scripted")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts it with a prompt and without a screen.
    pub fn start(&self, prompt: &str, arguments: &[&str]) -> Child {
        let mut command = self.sheaf(&["-p", prompt]);
        command.args(arguments).spawn().expect("it runs")
    }

    /// Starts it, lets the model make the calls of each step and then end its answer. Returns the results of the calls, and what
    /// was printed.
    pub fn play(&self, arguments: &[&str], steps: &[&[(&str, Value)]]) -> (Vec<String>, Output) {
        let child = self.start("go", arguments);
        let mut results = Vec::new();
        for step in steps {
            let asked = self.model.asked();
            results.extend(asked.results());
            asked.calls(step);
        }
        let last = self.model.asked();
        results.extend(last.results());
        last.says("Done.");
        last.finish();
        (results, child.wait_with_output().expect("it ends"))
    }

    /// Runs it to its end: all that it printed, and its exit code.
    pub fn run(&self, arguments: &[&str]) -> (String, i32) {
        let output = self.sheaf(arguments).output().expect("it runs");
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        (printed, output.status.code().unwrap_or(-1))
    }
}
