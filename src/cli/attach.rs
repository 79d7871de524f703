//! Standard input as a part of the prompt.

use std::{
    io::{self, IsTerminal as _, Read},
    sync::mpsc,
    time::Duration,
};

use anyhow::{Context as _, Result};

/// More of standard input is not sent: it would not fit into most models' windows.
const LIMIT_BYTES: usize = 256 << 10;

/// An input that says nothing for so long may be one that nobody meant.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether somebody gave us something to read: a file, or what another program writes.
pub fn is_piped() -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        let Ok(facts) = std::fs::metadata("/dev/stdin") else {
            return false;
        };
        let kind = facts.file_type();
        kind.is_file() || kind.is_fifo() || kind.is_socket()
    }
    #[cfg(not(unix))]
    !io::stdin().is_terminal()
}

/// The prompt with standard input attached, if that is no terminal; `None` when there is nothing at all.
pub fn prompt(words: String, complain: &mut dyn FnMut(&str)) -> Result<Option<String>> {
    let words = words.trim().to_owned();
    let input = if io::stdin().is_terminal() {
        None
    } else {
        read_patiently(complain).context("standard input cannot be read")?
    };
    let Some(input) = input else {
        return Ok((!words.is_empty()).then_some(words));
    };
    if input.left_out > 0 {
        complain(&format!(
            "only the first {} KiB of standard input were sent, {} more were left out",
            LIMIT_BYTES >> 10,
            size(input.left_out)
        ));
    }
    Ok(Some(joined(&words, &input)))
}

/// What came in, as far as it is sent.
#[derive(Debug, Default, PartialEq, Eq)]
struct Input {
    text: String,
    left_out: u64,
}

/// Says that it waits when nothing comes: a pipe that somebody inherited may never end.
fn read_patiently(complain: &mut dyn FnMut(&str)) -> io::Result<Option<Input>> {
    let (done, outcome) = mpsc::channel();
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || done.send(read(io::stdin().lock())))?;
    match outcome.recv_timeout(PATIENCE) {
        Ok(input) => input,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            complain("waiting for standard input to end\n  `< /dev/null` leaves it out");
            outcome.recv().unwrap_or(Ok(None))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => Ok(None),
    }
}

fn read(mut from: impl Read) -> io::Result<Option<Input>> {
    let mut bytes = Vec::new();
    from.by_ref().take(LIMIT_BYTES as u64).read_to_end(&mut bytes)?;
    let left_out = if bytes.len() < LIMIT_BYTES {
        0
    } else {
        io::copy(&mut from, &mut io::sink())?
    };
    if left_out > 0 {
        // A character that the limit cuts in two goes as a whole.
        while bytes.last().is_some_and(|it| it & 0xc0 == 0x80) {
            bytes.pop();
        }
        if bytes.last().is_some_and(|it| *it >= 0xc0) {
            bytes.pop();
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((!text.trim().is_empty()).then_some(Input { text, left_out }))
}

/// The words, then the input in a fence that it cannot close.
fn joined(words: &str, input: &Input) -> String {
    if words.is_empty() && input.left_out == 0 {
        return input.text.trim_end().to_owned();
    }
    let longest = input.text.split(|it| it != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let mut text = String::new();
    if !words.is_empty() {
        text.push_str(words);
        text.push_str("\n\n");
    }
    let cut = if input.left_out > 0 {
        format!(
            " (its first {} KiB, {} more were left out)",
            LIMIT_BYTES >> 10,
            size(input.left_out)
        )
    } else {
        String::new()
    };
    let body = input.text.trim_end();
    text + &format!("Standard input{cut}:\n\n{fence}\n{body}\n{fence}")
}

fn size(bytes: u64) -> String {
    if bytes < 1 << 20 {
        format!("{} KiB", bytes.div_ceil(1 << 10))
    } else {
        format!("{} MiB", bytes.div_ceil(1 << 20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_and_words_go_together_and_each_goes_alone() {
        let input = |text: &str| Input {
            text: text.to_owned(),
            left_out: 0,
        };
        for (words, text, says) in [
            ("review", "a\nb\n", "review\n\nStandard input:\n\n```\na\nb\n```"),
            ("", "a\nb\n", "a\nb"),
            ("x", "```rust\n```", "x\n\nStandard input:\n\n````\n```rust\n```\n````"),
        ] {
            assert_eq!(joined(words, &input(text)), says);
        }
    }

    #[test]
    fn what_is_too_long_is_cut_at_a_character_and_said() {
        let long = "ä".repeat(LIMIT_BYTES);
        let input = read(long.as_bytes())
            .expect("bytes can be read")
            .expect("there is some");
        assert!(input.text.len() <= LIMIT_BYTES && input.text.chars().all(|it| it == 'ä'));
        assert_eq!(input.left_out, LIMIT_BYTES as u64);
        let text = joined("", &input);
        assert!(text.starts_with("Standard input (its first 256 KiB, 256 KiB more were left out):"));
    }

    #[test]
    fn an_odd_limit_does_not_split_a_character() {
        let long = format!("x{}", "ä".repeat(LIMIT_BYTES));
        let input = read(long.as_bytes())
            .expect("bytes can be read")
            .expect("there is some");
        assert!(!input.text.contains('\u{fffd}'));
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(read("".as_bytes()).expect("read"), None);
        assert_eq!(read(" \n".as_bytes()).expect("read"), None);
    }
}
