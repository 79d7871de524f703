//! The live tour: the real binary, the real agent and real files, with a script in the place of a model.
//!
//! So it is where the screen and the agent are seen together: what is asked, allowed, refused, stopped and said in between.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, test_kill_process};

use crate::pty::{ALLOW, LIMIT, Seen, Sheaf, Start};

/// A tour whose first question has been answered with "I'd rather type myself".
struct Tour {
    sheaf: Sheaf,
    /// Where the throw-away folder is made.
    temporary: tempfile::TempDir,
}

const WAITING: &str = "waiting for you";

impl Tour {
    fn begin() -> Self {
        Self::of(Start::new(&["tour", "--live", "--speed", "0"]), "5")
    }

    fn of(start: Start, key: &str) -> Self {
        let temporary = tempfile::tempdir().expect("a folder");
        let path = temporary.path().to_str().expect("plain").to_owned();
        let sheaf = start.with("TMPDIR", &path).size(100, 44).run();
        let tour = Self { sheaf, temporary };
        tour.sheaf.wait_for("What would you like to see?");
        tour.choose(key, "the first question is answered", |seen| {
            seen.shows("Then it is your turn")
        });
        tour.idle();
        tour
    }

    /// Allows what waits for approval.
    fn allow(&self, what: &str, holds: impl Fn(&Seen) -> bool) {
        self.decide(ALLOW, what, holds);
    }

    /// Marks an option of the question that waits and sends it.
    fn choose(&self, option: &str, what: &str, holds: impl Fn(&Seen) -> bool) {
        self.sheaf.wait_for(WAITING);
        self.sheaf.send(option);
        self.decide("\r", what, holds);
    }

    /// Presses a key until it is obeyed, and takes back what of it came too late.
    fn decide(&self, key: &str, what: &str, holds: impl Fn(&Seen) -> bool) {
        self.sheaf.wait_for(WAITING);
        self.sheaf.insist(key, what, |seen| !seen.shows(WAITING) || holds(seen));
        self.sheaf.send("\x15");
        self.sheaf.wait_until(what, holds);
    }

    fn say(&self, text: &str) {
        self.sheaf.send(text);
        self.sheaf.wait_for(&format!("› {text}"));
        self.sheaf.send("\r");
    }

    fn idle(&self) {
        self.sheaf.wait_until("the answer is over", |seen| {
            !["agent ◐", "plan ◐", "ask ◐", "debug ◐"]
                .iter()
                .any(|it| seen.shows(it))
        });
    }

    /// The throw-away folder, if there is one.
    fn folder(&self) -> Option<PathBuf> {
        let mut entries = std::fs::read_dir(self.temporary.path()).expect("a folder").flatten();
        let found = entries.find(|it| it.file_name().to_string_lossy().starts_with("sheaf-tour-"));
        found.map(|it| it.path())
    }

    fn file(&self, path: &str) -> String {
        let folder = self.folder().expect("the tour has a folder");
        std::fs::read_to_string(folder.join("hours").join(path)).expect("it is there")
    }

    fn leave(&self) {
        self.sheaf.send("\x15\x04");
        self.sheaf.assert_left(0);
        assert_eq!(self.left_behind(), Vec::<PathBuf>::new());
    }

    fn left_behind(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.temporary.path()).expect("a folder").flatten();
        entries.map(|it| it.path()).collect()
    }

    /// Has the slow test run; gives its process. What it says of its own number holds in the sandbox only.
    fn soak(&self) -> Pid {
        self.say("Run the soak test");
        self.allow("it runs", |seen| seen.shows("soak: process "));
        let processes = std::fs::read_dir("/proc").expect("the processes").flatten();
        let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse().ok());
        let found = numbers.filter_map(Pid::from_raw).find(|it| {
            let command = std::fs::read(format!("/proc/{it}/cmdline")).unwrap_or_default();
            command == b"sh\0test/soak.sh\0" && self.is_ours(*it)
        });
        found.unwrap_or_else(|| panic!("it runs nowhere\n{}", self.sheaf.picture()))
    }

    /// Whether it descends from the program under test.
    fn is_ours(&self, process: Pid) -> bool {
        std::iter::successors(Some(process), |it| {
            let stat = std::fs::read_to_string(format!("/proc/{it}/stat")).ok()?;
            // A name may hold anything; what follows its parenthesis is the state and the parent.
            let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?;
            Pid::from_raw(parent.parse().ok()?)
        })
        .any(|it| it == self.sheaf.process())
    }
}

/// Until nobody has the number any more: who is killed stays in the table until its parent has looked.
fn wait_dead(process: Pid) {
    let since = std::time::Instant::now();
    while test_kill_process(process).is_ok() {
        assert!(since.elapsed() < LIMIT, "{process} lives");
        std::thread::yield_now();
    }
}

#[test]
fn what_is_allowed_is_done_and_the_edit_is_on_the_disk() {
    let tour = Tour::begin();
    let before = tour.file("lib/time.sh");
    assert!(tour.sheaf.look(|seen| seen.line(0).contains("sheaf-tour-")));
    tour.say("Fix the failing test");
    tour.sheaf.wait_for("sh test/run.sh");
    tour.allow("the test has run", |seen| seen.shows("4 good, 2 bad"));
    // The model hears what the command printed and goes on; the change needs no question, the next command does.
    tour.sheaf.wait_for("Now the same test again.");
    assert_ne!(tour.file("lib/time.sh"), before);
    tour.allow("the test has run again", |seen| seen.shows("6 good, 0 bad"));
    tour.sheaf.wait_for("Mended, and shown to be");
    tour.idle();
    assert!(tour.file("lib/time.sh").contains("echo $((${h#0} * 60 + ${m#0}))"));
    // What was coloured by the test is coloured here, and is no text.
    assert!(tour.sheaf.look(|seen| !seen.shows("[32m")));
    // The same again finds nothing to do.
    tour.say("Fix the failing test");
    tour.allow("it says so", |seen| seen.shows("There is nothing to mend any more"));
    tour.leave();
}

#[test]
fn what_is_refused_is_not_done_and_the_reason_is_heard() {
    let tour = Tour::begin();
    let before = tour.file("lib/time.sh");
    tour.say("Fix the failing test");
    tour.sheaf.wait_for("sh test/run.sh");
    tour.sheaf.wait_for(WAITING);
    tour.sheaf
        .insist("\t", "the card has the focus", |seen| seen.shows("N no, because"));
    tour.sheaf
        .insist("N", "it asks why", |seen| seen.shows("N no, because:"));
    // Whatever the key was pressed again for is in the reason.
    tour.sheaf.send("\x15not on a friday\r");
    tour.sheaf.wait_for("not on a friday).");
    tour.sheaf.wait_for("rejected");
    tour.idle();
    assert!(tour.sheaf.look(|seen| !seen.shows("good, ")), "nothing has run");
    assert_eq!(tour.file("lib/time.sh"), before);
    tour.leave();
}

#[test]
fn a_question_is_answered_and_the_answer_decides() {
    let tour = Tour::begin();
    tour.say("Round the times");
    tour.sheaf.wait_for("What are spans rounded to?");
    tour.choose("2", "it is chosen", |seen| seen.shows("2/2"));
    // The form goes on to its next question, and is sent when all are answered.
    tour.sheaf.send("1");
    tour.sheaf.wait_for("☑ Whoever reads the README");
    tour.sheaf
        .insist("\r", "the form is sent", |seen| seen.shows("Five minutes, then."));
    tour.allow("it is tried", |seen| seen.shows("as you wanted it"));
    tour.idle();
    // 113 minutes, to the nearest five.
    tour.sheaf.wait_for("1:55");
    assert!(tour.file("lib/time.sh").contains("to the nearest five"));
    tour.leave();
}

#[test]
fn a_plan_is_changed_and_built_as_it_was_left() {
    let tour = Tour::begin();
    tour.say("Plan totals by project");
    tour.sheaf.wait_for("change to plan mode");
    tour.allow("the plan is shown", |seen| {
        seen.shows("Totals by project") && seen.shows("0 of 4")
    });
    tour.sheaf.wait_for("tab plan");
    tour.sheaf.send("\t");
    tour.sheaf.wait_for("b build");
    // To the first todo: ticked, a new one behind it, and that one moved down.
    tour.sheaf.send("\x1b[B");
    tour.sheaf.wait_for("x check");
    tour.sheaf.send("x");
    tour.sheaf.wait_for("☑ Add up minutes by project");
    tour.sheaf.send("i");
    tour.sheaf.wait_for("new todo");
    tour.sheaf.send("Tell the gardener\r");
    let order = |seen: &Seen, above: &str, below: &str| {
        let rows = seen.line_of(above).zip(seen.line_of(below));
        rows.is_some_and(|(above, below)| above + 1 == below)
    };
    tour.sheaf.wait_until("the new todo is behind the first", |seen| {
        order(seen, "☑ Add up minutes", "☐ Tell the gardener")
    });
    tour.sheaf.send("J");
    tour.sheaf.wait_until("it has moved down", |seen| {
        order(seen, "☐ Show the sums", "☐ Tell the gardener")
    });
    assert!(tour.sheaf.look(|seen| seen.shows("1 of 5")));
    tour.sheaf.insist("b", "it is marked", |seen| seen.shows("enter build"));
    tour.sheaf.send("\r");
    tour.sheaf.wait_for("I build it as you have left it.");
    tour.sheaf.wait_for("sh test/run.sh; sh hours sheet.txt");
    tour.allow("it is built", |seen| seen.shows("Built: hours shows"));
    tour.idle();
    let sheet = tour.file("lib/project.sh");
    assert!(sheet.contains("by_project()"), "{sheet}");
    assert!(tour.file("README.md").contains("what each project took"));
    // The plan above says what is left: what the user added.
    tour.sheaf.insist("\x1b[5~", "the plan is in view", |seen| {
        seen.shows("☐ Tell the gardener") && seen.shows("☑ Say so in README.md")
    });
    tour.leave();
}

#[test]
fn what_is_said_while_it_works_is_heard_at_the_next_step() {
    let tour = Tour::begin();
    tour.soak();
    tour.sheaf.send("and the README, please");
    tour.sheaf.wait_for("› and the README, please");
    tour.sheaf.send("\r");
    tour.sheaf.wait_until("it waits", |seen| {
        seen.line_of("and the README, please")
            .is_some_and(|it| seen.line(it).contains("next"))
    });
    // The command goes on, and then the model has heard it.
    tour.sheaf.wait_for("The whole day is sound.");
    tour.sheaf
        .wait_for("You said and the README, please while I was at work");
    tour.idle();
    // What waited is the user's text inside the answer now.
    let said = tour.sheaf.look(|seen| {
        let line = (0..44).find(|&y| {
            let line = seen.line(y);
            line.contains("and the README, please") && !line.contains("You said")
        });
        line.map(|it| seen.line(it))
    });
    assert!(
        said.as_ref().is_some_and(|it| !it.contains("next")),
        "{said:?}\n{}",
        tour.sheaf.picture()
    );
    tour.leave();
}

#[test]
fn esc_ends_a_command_with_its_answer() {
    let tour = Tour::begin();
    let process = tour.soak();
    tour.sheaf.send("\x1b");
    tour.sheaf.wait_until("command and answer say so", |seen| {
        seen.line_of("$ sh test/soak.sh")
            .is_some_and(|it| seen.line(it).contains("stopped"))
            && seen.shows("· stopped")
    });
    tour.idle();
    wait_dead(process);
    assert!(tour.sheaf.look(|seen| !seen.shows("the whole day is sound")));
    // It goes on from there.
    tour.say("hello");
    tour.sheaf.wait_for("I am a script, and that is not in it.");
    tour.leave();
}

#[test]
fn a_signal_takes_the_command_and_the_folder_along() {
    let tour = Tour::begin();
    let process = tour.soak();
    tour.sheaf.signal(Signal::TERM);
    tour.sheaf.assert_left(143);
    wait_dead(process);
    assert_eq!(tour.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn a_mark_that_was_forgotten_is_found() {
    let tour = Tour::begin();
    tour.say("Why is the night shift negative?");
    tour.allow("the mark is there", |seen| seen.shows("span 22:30 01:15"));
    assert!(tour.file("lib/time.sh").contains("SHEAF-DEBUG"));
    tour.allow("the evidence is there", |seen| seen.shows("22:30 is 1350, 01:15 is 75"));
    tour.sheaf.wait_for("clock \"$(span 22:30 01:15)\"");
    tour.allow("it is over", |seen| {
        seen.shows("All marks of instrumentation are removed.")
    });
    tour.idle();
    let text = tour.file("lib/time.sh");
    assert!(!text.contains("SHEAF-DEBUG") && text.contains("% 1440"), "{text}");
    tour.leave();
}

#[test]
fn a_file_is_found_by_an_at_sign_and_goes_along() {
    let tour = Tour::begin();
    tour.sheaf.send("Explain @ti");
    // It has been in the text above all the time.
    tour.sheaf.wait_until("the file is offered", |seen| {
        (0..44).filter(|y| seen.line(*y).contains("lib/time.sh")).count() == 2
    });
    tour.sheaf.send("\x15");
    tour.sheaf.wait_gone("› Explain");
    // Whoever types fast does not wait for the list.
    tour.sheaf.send("Explain @ti\t");
    tour.sheaf.wait_for("› Explain @lib/time.sh");
    tour.sheaf.send("\r");
    tour.sheaf.wait_for("takes each line of the sheet apart");
    // The lines that are cited are those of the file.
    tour.sheaf.wait_for("worked=$(span");
    tour.idle();
    tour.leave();
}

#[test]
fn the_page_of_the_context_opens() {
    let tour = Tour::begin();
    tour.say("Fix the failing test");
    tour.sheaf.wait_for("sh test/run.sh");
    tour.allow("it goes on", |seen| seen.shows("Now the same test again."));
    tour.allow("it is over", |seen| seen.shows("Mended, and shown to be"));
    tour.idle();
    tour.sheaf.send("/context\r");
    tour.sheaf
        .wait_until("the page is there", |seen| seen.shows("system prompt"));
    tour.sheaf.send("\x1b");
    tour.sheaf.wait_gone("system prompt");
    tour.leave();
}

#[test]
fn whoever_has_nobody_to_ask_can_try_it_at_once() {
    let temporary = tempfile::tempdir().expect("a folder");
    let sheaf = Start::new(&["--no-session"])
        .with("TMPDIR", temporary.path().to_str().expect("plain"))
        .size(100, 44)
        .run();
    sheaf.wait_for("Try it first");
    let key = sheaf.look(|seen| {
        let line = seen.line(seen.line_of("Try it first").expect("waited for"));
        line.trim().chars().next().expect("a number").to_string()
    });
    sheaf.send("\t");
    sheaf.send(&key);
    sheaf.insist("\r", "the tour begins", |seen| seen.shows("▌ Show me around."));
    sheaf.send("\x15");
    sheaf.wait_for("What would you like to see?");
    assert!(
        sheaf.look(|seen| seen.line(0).contains("sheaf-tour-")),
        "{}",
        sheaf.picture()
    );
    let folders = std::fs::read_dir(temporary.path()).expect("a folder").flatten().count();
    assert_eq!(folders, 1);
    sheaf.wait_for(WAITING);
    sheaf.send("5");
    sheaf.insist("\r", "it waits for words", |seen| seen.shows("Then it is your turn"));
    sheaf.send("\x15\x04");
    sheaf.assert_left(0);
    assert_eq!(
        std::fs::read_dir(temporary.path()).expect("a folder").flatten().count(),
        0
    );
}
