//! `switch_mode`: a model asks to work in another mode. The user decides.

use serde_json::json;

use super::tool::{Class, Fault, Input, Part, Tool, Work, names, schema};
use crate::protocol::{CallSubject, Mode};

/// The description that a model is shown.
const ABOUT: &str = "\
    Ask the user to go on in another mode: agent (changes files and runs commands), plan (researches and writes a plan), \
    ask (explains only), debug (finds a fault by evidence). The user may say no.";

/// The tool `switch_mode`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["SwitchMode"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "target_mode_id": { "type": "string", "enum": ["agent", "plan", "ask", "debug"] },
                "explanation": { "type": "string" }
            }),
            &["target_mode_id"],
        ),
        synonyms: &[("target_mode_id", &["mode", "target_mode", "targetModeId", "modeId"])],
        word: "mode".into(),
        subject: CallSubject::Other,
        examples: &[
            r#"{ "target_mode_id": "agent" }"#,
            r#"{ "target_mode_id": "debug" }"#,
            r#"{ "target_mode_id": "plan" }"#,
            r#"{ "target_mode_id": "ask" }"#,
        ],
        ..Tool::new("switch_mode", Class::Talks, Work::Turn(Part::Mode))
    }
}

/// Reads the mode that a call asks for.
pub fn read(input: &Input) -> Result<Mode, Fault> {
    let word = input.text("target_mode_id").unwrap_or_default();
    Mode::parse(word).ok_or_else(|| {
        Fault::arguments(format!("unknown mode `{word}`")).hint("The modes are agent, plan, ask and debug.")
    })
}
