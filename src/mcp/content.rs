//! Results of a server, as text and pictures of bounded size.

use base64::Engine as _;
use serde_json::Value;

use crate::{models::Image, text::Sanitized};

/// Pictures of one result.
const MOST_PICTURES: usize = 8;
/// Bytes of one picture.
const PICTURE_BYTES: usize = 5 << 20;
/// Kinds of pictures that models take.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A picture of a result.
pub type Picture = Image;

/// The result of a call, a resource or a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Harmless on a terminal; as long as it came.
    pub text: String,
    pub pictures: Vec<Picture>,
    /// The server says that the call failed.
    pub is_error: bool,
}

impl Reply {
    /// Reads a result of `tools/call`. What is structured is told once: as its text, if it has one.
    pub fn of_call(result: &Value) -> Self {
        let mut reply = Self {
            is_error: result.get("isError").and_then(Value::as_bool).unwrap_or_default(),
            ..Self::default()
        };
        reply.add_all(result.get("content"));
        let structured = result.get("structuredContent").filter(|it| !it.is_null());
        if let Some(structured) = structured.filter(|_| reply.text.trim().is_empty()) {
            reply.line(&serde_json::to_string_pretty(structured).unwrap_or_default());
        }
        reply
    }

    /// Reads a result of `resources/read`.
    pub fn of_resource(result: &Value) -> Self {
        let mut reply = Self::default();
        let contents = result.get("contents").and_then(Value::as_array);
        for content in contents.into_iter().flatten() {
            reply.resource(content);
        }
        reply
    }

    /// Reads a result of `prompts/get`: the text of all its messages.
    pub fn of_prompt(result: &Value) -> Self {
        let mut reply = Self::default();
        let messages = result.get("messages").and_then(Value::as_array);
        for message in messages.into_iter().flatten() {
            if message.get("role").and_then(Value::as_str) == Some("assistant") {
                reply.line("[the assistant:]");
            }
            reply.add_all(message.get("content"));
        }
        reply
    }

    fn add_all(&mut self, content: Option<&Value>) {
        match content {
            Some(Value::Array(parts)) => parts.iter().for_each(|it| self.add(it)),
            Some(part @ Value::Object(_)) => self.add(part),
            Some(Value::String(text)) => self.line(text),
            Some(_) | None => {}
        }
    }

    fn line(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(Sanitized::new(text).as_str());
    }

    fn add(&mut self, part: &Value) {
        let text = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text" => self.line(text("text")),
            "image" => self.picture(text("mimeType"), text("data")),
            "audio" => self.left_out("audio", text("mimeType"), text("data")),
            "resource_link" => {
                let about = [text("name"), text("title"), text("description")];
                let about: Vec<&str> = about.into_iter().filter(|it| !it.is_empty()).collect();
                self.line(&format!("[resource {}: {}]", text("uri"), about.join(", ")));
            }
            "resource" => {
                if let Some(resource) = part.get("resource") {
                    self.resource(resource);
                }
            }
            other => self.line(&format!(
                "[left out: a part of the unknown type `{}`]",
                capped(other, 40)
            )),
        }
    }

    fn resource(&mut self, resource: &Value) {
        let text = |name: &str| resource.get(name).and_then(Value::as_str);
        let media = text("mimeType").unwrap_or_default();
        match (text("text"), text("blob")) {
            (Some(body), _) => {
                self.line(&format!("[{}]", text("uri").unwrap_or("a resource")));
                self.line(body);
            }
            (None, Some(blob)) if PICTURES.contains(&media) => self.picture(media, blob),
            (None, Some(blob)) => self.left_out("resource", media, blob),
            (None, None) => {}
        }
    }

    fn left_out(&mut self, what: &str, media: &str, data: &str) {
        self.line(&format!(
            "[left out: {what} of type {}, {} bytes]",
            capped(media, 60),
            data.len() / 4 * 3
        ));
    }

    fn picture(&mut self, media: &str, data: &str) {
        let is_known = PICTURES.contains(&media) && data.len() / 4 * 3 <= PICTURE_BYTES;
        let bytes = is_known.then(|| base64::engine::general_purpose::STANDARD.decode(data).ok());
        match bytes.flatten().filter(|_| self.pictures.len() < MOST_PICTURES) {
            Some(bytes) => {
                self.line(&format!(
                    "[picture {}: {media}, {} bytes]",
                    self.pictures.len() + 1,
                    bytes.len()
                ));
                self.pictures.push(Image {
                    media_type: media.to_owned(),
                    bytes: bytes.into(),
                });
            }
            None => self.left_out("a picture", media, data),
        }
    }
}

/// The beginning of a text, of about `limit` bytes, with a note if something is cut.
pub fn capped(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    let begin = text.get(..end).unwrap_or_default().trim_end();
    format!("{begin} [cut: {} bytes are left out]", text.len() - end)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_content_is_told() {
        let result = json!({
            "content": [
                { "type": "text", "text": "one\u{1b}[31m \u{202e}two" },
                { "type": "image", "mimeType": "image/png", "data": "AAAA" },
                { "type": "image", "mimeType": "image/svg+xml", "data": "AAAA" },
                { "type": "image", "mimeType": "image/png", "data": "%%%" },
                { "type": "audio", "mimeType": "audio/wav", "data": "AAAAAAAA" },
                { "type": "resource_link", "uri": "file:///a", "name": "a", "description": "first" },
                { "type": "resource", "resource": { "uri": "x://b", "text": "body" } },
                { "type": "resource", "resource": { "uri": "x://c", "mimeType": "application/zip", "blob": "AAAA" } },
                { "type": "hologram" },
                "what",
            ],
            "isError": true,
        });
        let reply = Reply::of_call(&result);
        let expected = "one two\n\
                        [picture 1: image/png, 3 bytes]\n\
                        [left out: a picture of type image/svg+xml, 3 bytes]\n\
                        [left out: a picture of type image/png, 0 bytes]\n\
                        [left out: audio of type audio/wav, 6 bytes]\n\
                        [resource file:///a: a, first]\n\
                        [x://b]\nbody\n\
                        [left out: resource of type application/zip, 3 bytes]\n\
                        [left out: a part of the unknown type `hologram`]\n\
                        [left out: a part of the unknown type ``]";
        assert_eq!(
            (reply.text.as_str(), reply.pictures.len(), reply.is_error),
            (expected, 1, true)
        );
    }

    #[test]
    fn what_is_structured_is_told_once() {
        let both = json!({ "content": [{ "type": "text", "text": "{\"a\":1}" }], "structuredContent": { "a": 1 } });
        assert_eq!(Reply::of_call(&both).text, "{\"a\":1}");
        let alone = json!({ "content": [], "structuredContent": { "a": 1 } });
        assert_eq!(Reply::of_call(&alone).text, "{\n  \"a\": 1\n}");
        assert_eq!(Reply::of_call(&json!(7)), Reply::default());
    }
}
