//! Request rules by the generation in a model's name.
//!
//! The server answers 400 to a way of thinking, or to a temperature, that the model does not have. The rules go by
//! generation, so that a model of next month is most likely asked as the ones before it.

/// The way to make a model think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    Never,
    /// `enabled`, with a budget of tokens.
    Budget,
    /// `adaptive`, with a word for the effort.
    Adaptive {
        /// True if it thinks by default.
        by_default: bool,
        /// True if thinking can be disabled.
        can_stop: bool,
    },
}

/// Properties of a model, from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    pub thinking: Thinking,
    /// True if it accepts a temperature while it does not think.
    pub has_temperature: bool,
    /// True if it is asked to think although the effort is not set.
    pub is_eager: bool,
    /// The most tokens to ask for when the settings do not say.
    pub output: u64,
}

impl Family {
    /// `vendor/` and a region in front, dates and versions behind and dots instead of dashes make no difference.
    pub fn of(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let Some((_, rest)) = model.split_once("claude-") else {
            return Self::STRANGER;
        };
        let words: Vec<&str> = rest.split(['-', '.', '@', ':', '_', '/', '[']).collect();
        let is = |name: &str| words.contains(&name);
        // The first numbers in a row; a date is longer than two digits.
        let numbers: Vec<u32> = words
            .iter()
            .skip_while(|it| number(it).is_none())
            .map_while(|it| number(it))
            .take(2)
            .collect();
        let version = (
            numbers.first().copied().unwrap_or(0),
            numbers.get(1).copied().unwrap_or(0),
        );
        if is("mythos") || is("fable") || version >= (5, 1) {
            return Self::adaptive(true, false);
        }
        match version {
            (5, _) => Self::adaptive(true, true),
            (4, 7..) => Self::adaptive(false, true),
            (4, 6) => Self {
                has_temperature: true,
                is_eager: true,
                ..Self::adaptive(false, true)
            },
            (4, 5) => Self {
                is_eager: true,
                ..Self::budget(64_000)
            },
            (4, _) => Self::budget(32_000),
            (3, 7) => Self::budget(16_000),
            (3, 5) => Self::silent(8_192),
            (3, _) => Self::silent(4_096),
            // No version at all is an alias of something recent.
            (0, _) => Self::adaptive(false, false),
            (_, _) => Self::silent(4_096),
        }
    }

    /// A model that is not Anthropic's, behind a server that speaks its format.
    const STRANGER: Self = Self {
        thinking: Thinking::Budget,
        has_temperature: true,
        is_eager: false,
        output: 8_192,
    };

    const fn adaptive(by_default: bool, can_stop: bool) -> Self {
        Self {
            thinking: Thinking::Adaptive { by_default, can_stop },
            has_temperature: false,
            is_eager: by_default,
            output: 64_000,
        }
    }

    const fn budget(output: u64) -> Self {
        Self {
            thinking: Thinking::Budget,
            has_temperature: true,
            is_eager: false,
            output,
        }
    }

    const fn silent(output: u64) -> Self {
        Self {
            thinking: Thinking::Never,
            has_temperature: true,
            is_eager: false,
            output,
        }
    }
}

fn number(word: &str) -> Option<u32> {
    (word.len() <= 2).then(|| word.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_how_a_model_wants_to_be_asked() {
        let adaptive = |by_default, can_stop| Thinking::Adaptive { by_default, can_stop };
        // As Anthropic's pages list them.
        let cases = [
            ("claude-fable-5-1", adaptive(true, false), false, 64_000),
            ("claude-fable-5", adaptive(true, false), false, 64_000),
            ("claude-mythos-preview", adaptive(true, false), false, 64_000),
            ("claude-opus-5-5", adaptive(true, false), false, 64_000),
            ("claude-haiku-5-5", adaptive(true, false), false, 64_000),
            ("claude-opus-5", adaptive(true, true), false, 64_000),
            ("claude-sonnet-5", adaptive(true, true), false, 64_000),
            ("claude-opus-4-8", adaptive(false, true), false, 64_000),
            ("claude-opus-4-7", adaptive(false, true), false, 64_000),
            ("claude-opus-4-6", adaptive(false, true), true, 64_000),
            ("anthropic.claude-opus-4-6-v1", adaptive(false, true), true, 64_000),
            ("claude-sonnet-4-6", adaptive(false, true), true, 64_000),
            ("claude-haiku-4-5-20251001", Thinking::Budget, true, 64_000),
            ("anthropic/claude-sonnet-4.5", Thinking::Budget, true, 64_000),
            ("claude-opus-4-1-20250805", Thinking::Budget, true, 32_000),
            ("claude-opus-4@20250514", Thinking::Budget, true, 32_000),
            (
                "us.anthropic.claude-sonnet-4-20250514-v1:0",
                Thinking::Budget,
                true,
                32_000,
            ),
            ("claude-3-7-sonnet-20250219", Thinking::Budget, true, 16_000),
            ("claude-3-5-haiku-20241022", Thinking::Never, true, 8_192),
            ("Claude-3-Opus-20240229", Thinking::Never, true, 4_096),
            ("claude-2.1", Thinking::Never, true, 4_096),
            ("claude-opus-latest", adaptive(false, false), false, 64_000),
            ("qwen2.5-coder", Thinking::Budget, true, 8_192),
            ("", Thinking::Budget, true, 8_192),
        ];
        for (model, thinking, has_temperature, output) in cases {
            let want = Family {
                thinking,
                has_temperature,
                is_eager: Family::of(model).is_eager,
                output,
            };
            assert_eq!(Family::of(model), want, "{model}");
        }
        for (model, is_eager) in [
            ("claude-opus-5", true),
            ("claude-opus-4-8", false),
            ("claude-sonnet-4-6", true),
            ("claude-haiku-4-5-20251001", true),
            ("claude-opus-4-1-20250805", false),
            ("claude-3-5-haiku-20241022", false),
            ("qwen2.5-coder", false),
        ] {
            assert_eq!(Family::of(model).is_eager, is_eager, "{model}");
        }
    }
}
