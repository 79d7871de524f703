//! What is known about well-known models without asking anyone.
//!
//! Only windows: prices change too often to be right in a program, so an unknown price is called unknown. What a
//! server or the configuration says wins over this table.

/// Tokens that fit into the window of `model`; `None` when the model is not known here.
///
/// `vendor/` in front and whatever follows a known name (dates, sizes, quantisations) are ignored.
pub fn window(model: &str) -> Option<u64> {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    WINDOWS
        .iter()
        .filter(|(prefix, _)| name.starts_with(prefix))
        .max_by_key(|(prefix, _)| prefix.len())
        .map(|(_, window)| *window)
}

/// The longest prefix wins.
const WINDOWS: &[(&str, u64)] = &[
    ("chatgpt-4o", 128_000),
    ("claude-", 200_000),
    ("codestral", 262_144),
    ("command-a", 262_144),
    ("command-r", 131_072),
    ("deepseek-chat", 131_072),
    ("deepseek-reasoner", 131_072),
    ("deepseek-v3", 131_072),
    ("deepseek-r1", 131_072),
    ("devstral", 131_072),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini-", 1_048_576),
    ("gemma-2", 8_192),
    ("gemma-3", 131_072),
    ("gemma3", 131_072),
    ("glm-4.5", 131_072),
    ("gpt-3.5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-32k", 32_768),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("gpt-oss", 131_072),
    ("grok-3", 131_072),
    ("grok-4", 262_144),
    ("kimi-k2", 131_072),
    ("llama-3.1", 131_072),
    ("llama-3.2", 131_072),
    ("llama-3.3", 131_072),
    ("llama3.1", 131_072),
    ("llama3.2", 131_072),
    ("llama3.3", 131_072),
    ("mistral-large", 131_072),
    ("mistral-medium", 131_072),
    ("mistral-small", 131_072),
    ("o1", 200_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("phi-4", 16_384),
    ("qwen2.5-coder", 32_768),
    ("qwen3-coder", 262_144),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_known_name_decides() {
        let cases: &[(&str, Option<u64>)] = &[
            ("gpt-4o-2024-11-20", Some(128_000)),
            ("gpt-4-0613", Some(8_192)),
            ("gpt-4-turbo-preview", Some(128_000)),
            ("openai/gpt-4.1-mini", Some(1_047_576)),
            ("anthropic/claude-sonnet-4.5", Some(200_000)),
            ("o1-mini", Some(128_000)),
            ("Qwen2.5-Coder-0.5B", Some(32_768)),
            ("my-own-model", None),
            ("", None),
            ("llama", None),
        ];
        for (model, want) in cases {
            assert_eq!(window(model), *want, "{model}");
        }
    }

    #[test]
    fn no_name_stands_twice() {
        for (at, (name, _)) in WINDOWS.iter().enumerate() {
            assert!(WINDOWS.iter().skip(at + 1).all(|(other, _)| other != name), "{name}");
        }
    }
}
