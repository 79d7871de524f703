use serde_json::json;
use sheaf::{
    protocol::{Event, Message},
    text::{NoColours, markdown::Flow},
    tui::desk::{Desk, delta, end, start},
};
fn main() {
    let mode = std::env::args().nth(1).unwrap();
    let tokens: Vec<String> =
        serde_json::from_str(&std::fs::read_to_string("/tmp/spine/tokens.json").unwrap()).unwrap();
    match mode.as_str() {
        "flow" => {
            let mut flow = Flow::new(1);
            let (mut source, mut rows) = (String::new(), Vec::new());
            for t in &tokens {
                source.push_str(t);
                flow.update(&source, false, 111, &NoColours, &mut rows);
            }
            println!("{}", rows.len());
        }
        _ => {
            let mut desk = Desk::new(120, 40).blind();
            // As the segmenter cuts it.
            desk.events([Event::UserMessage(Message::user("go")), start("a", "text", json!({}))]);
            for t in &tokens {
                desk.events([delta("a", t)]);
            }
            desk.events([end("a", None, json!({}))]);
            println!("{}", desk.bytes());
        }
    }
}
