//! Parts of a message's content, as both of OpenAI's APIs write them.

use serde_json::Value;

use crate::server::{
    facade::{self, refused},
    refusal::Refusal,
};

/// Returns the texts and the pictures of a message. `place` names the message in errors.
pub fn content(content: Option<&Value>, place: &str) -> Result<(Vec<String>, Vec<Value>), Refusal> {
    let parts = match content {
        None | Some(Value::Null) => return Ok((Vec::new(), Vec::new())),
        Some(Value::String(text)) => return Ok((vec![text.clone()], Vec::new())),
        Some(Value::Array(parts)) => parts,
        Some(_) => {
            return Err(refused(
                place,
                format!("`{place}.content` has to be a text or a list of parts"),
            ));
        }
    };
    let (mut texts, mut pictures) = (Vec::new(), Vec::new());
    for (at, part) in parts.iter().enumerate() {
        let place = format!("{place}.content[{at}]");
        let text = |name: &str| part.get(name).and_then(Value::as_str);
        match text("type") {
            Some("text" | "input_text" | "output_text") => texts.extend(text("text").map(str::to_owned)),
            Some("refusal") => texts.extend(text("refusal").map(str::to_owned)),
            Some("image_url" | "input_image") => {
                let url = part
                    .get("image_url")
                    .and_then(|it| it.get("url").unwrap_or(it).as_str());
                pictures.push(facade::picture(url, &place)?);
            }
            _ => return Err(refused(&place, format!("`{place}` is neither text nor an image"))),
        }
    }
    Ok((texts, pictures))
}
