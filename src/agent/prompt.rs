//! What a model is told before the conversation starts. Pure: the same mode, the same words.

use crate::protocol::Mode;

/// What holds always, then a section for each mode under a line `== mode`.
const CHAT: &str = include_str!("../../assets/prompts/chat.md");

const SECTION: &str = "\n== ";

/// The system prompt of a conversation without tools.
pub fn system(mode: Mode) -> String {
    let mut parts = CHAT.split(SECTION);
    let common = parts.next().unwrap_or_default();
    let own = parts.find_map(|it| it.strip_prefix(mode.as_str()));
    format!(
        "{}\n\nMode: {mode}. {}\n",
        common.trim(),
        own.unwrap_or_default().trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_told_its_own_lines_and_no_others() {
        for mode in Mode::ALL {
            let prompt = system(mode);
            assert!(!prompt.contains("=="), "{mode}: {prompt}");
            assert!(prompt.contains("no tools"), "{mode}");
            let section = CHAT
                .split(SECTION)
                .find_map(|it| it.strip_prefix(mode.as_str()))
                .expect("a section");
            assert!(section.trim().len() > 40 && prompt.contains(section.trim()), "{mode}");
            for other in Mode::ALL.into_iter().filter(|it| *it != mode) {
                let section = CHAT
                    .split(SECTION)
                    .find_map(|it| it.strip_prefix(other.as_str()))
                    .expect("a section");
                assert!(!prompt.contains(section.trim()), "{mode} is told about {other}");
            }
        }
    }
}
