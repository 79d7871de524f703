//! Standard input as part of the prompt.

use std::{
    io::{self, IsTerminal as _, Read},
    sync::mpsc,
    time::Duration,
};

use anyhow::{Context as _, Result};

/// Maximum size of standard input that is sent, in bytes: more would not fit into most context windows.
const MAX_BYTES: usize = 256 << 10;

/// Time after which a silent standard input is reported: it may be there by mistake.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns true if standard input is a file, a pipe or a socket.
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

/// Returns the prompt with standard input attached, unless that is a terminal. `None` if both are empty.
///
/// `complain` prints notices: input was cut, or is still awaited.
pub fn prompt(words: String, complain: &mut dyn FnMut(&str)) -> Result<Option<String>> {
    let words = words.trim().to_owned();
    let input = if io::stdin().is_terminal() {
        None
    } else {
        read_with_notice(complain).context("standard input cannot be read")?
    };
    let Some(input) = input else {
        return Ok((!words.is_empty()).then_some(words));
    };
    if input.left_out > 0 {
        complain(&format!(
            "only the first {} KiB of standard input were sent, {} more were left out",
            MAX_BYTES >> 10,
            size(input.left_out)
        ));
    }
    Ok(Some(joined(&words, &input)))
}

/// Standard input, cut to [`MAX_BYTES`].
#[derive(Debug, Default, PartialEq, Eq)]
struct AttachedInput {
    text: String,
    left_out: u64,
}

/// Reads standard input; reports the wait if nothing comes, since an inherited pipe may never end.
fn read_with_notice(complain: &mut dyn FnMut(&str)) -> io::Result<Option<AttachedInput>> {
    let (done, outcome) = mpsc::channel();
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || done.send(read(io::stdin().lock())))?;
    match outcome.recv_timeout(SILENCE_TIMEOUT) {
        Ok(input) => input,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            complain("waiting for standard input to end\n  add `< /dev/null` to ignore it");
            outcome.recv().unwrap_or(Ok(None))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => Ok(None),
    }
}

fn read(mut from: impl Read) -> io::Result<Option<AttachedInput>> {
    let mut bytes = Vec::new();
    from.by_ref().take(MAX_BYTES as u64).read_to_end(&mut bytes)?;
    let left_out = if bytes.len() < MAX_BYTES {
        0
    } else {
        io::copy(&mut from, &mut io::sink())?
    };
    if left_out > 0 {
        // Removes a character that the limit cut in two.
        while bytes.last().is_some_and(|it| it & 0xc0 == 0x80) {
            bytes.pop();
        }
        if bytes.last().is_some_and(|it| *it >= 0xc0) {
            bytes.pop();
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((!text.trim().is_empty()).then_some(AttachedInput { text, left_out }))
}

/// Returns the words, then the input in a fence longer than any in it.
fn joined(words: &str, input: &AttachedInput) -> String {
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
            MAX_BYTES >> 10,
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
        let input = |text: &str| AttachedInput {
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
        let long = "ä".repeat(MAX_BYTES);
        let input = read(long.as_bytes())
            .expect("bytes can be read")
            .expect("there is some");
        assert!(input.text.len() <= MAX_BYTES && input.text.chars().all(|it| it == 'ä'));
        assert_eq!(input.left_out, MAX_BYTES as u64);
        let text = joined("", &input);
        assert!(text.starts_with("Standard input (its first 256 KiB, 256 KiB more were left out):"));
    }

    #[test]
    fn an_odd_limit_does_not_split_a_character() {
        let long = format!("x{}", "ä".repeat(MAX_BYTES));
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
