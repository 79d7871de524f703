//! Which addresses a link of the terminal (OSC 8) may point to.

use std::sync::Arc;

use url::Url;

/// Terminals cut or refuse longer ones, and no honest link needs them.
const LONGEST: usize = 2048;

/// Returns the address as ASCII if it may be offered for a click: http, https or mailto without hidden parts. `None`
/// otherwise.
///
/// Hosts beyond ASCII become `xn--` names, so that look-alikes show; the rest is percent-encoded.
pub fn link_target(address: &str) -> Option<Arc<str>> {
    let hides = |c: char| c.is_control() || c.is_whitespace() || super::clean::is_hidden(c) || c == '\\';
    if address.len() > LONGEST || address.chars().any(hides) {
        return None;
    }
    let url = Url::parse(address).ok()?;
    let allowed = match url.scheme() {
        "http" | "https" => url.host_str().is_some_and(|it| !it.is_empty()),
        "mailto" => url.path().contains('@'),
        _ => false,
    };
    let text = url.as_str();
    let printable = text.bytes().all(|it| it.is_ascii_graphic());
    (allowed && printable && text.len() <= LONGEST).then(|| Arc::from(text))
}

/// Returns the host of a checked target, to show beside the link's text; for mailto the address.
pub fn link_host(target: &str) -> Option<String> {
    let url = Url::parse(target).ok()?;
    match url.scheme() {
        "mailto" => Some(url.path().to_owned()),
        _ => url.host_str().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_addresses_become_links() {
        let cases = [
            ("https://docs.rs/url", Some("https://docs.rs/url")),
            ("HTTP://Example.com/a?b=c;d#e", Some("http://example.com/a?b=c;d#e")),
            ("mailto:a@b.org", Some("mailto:a@b.org")),
            ("https://example.com/ä", Some("https://example.com/%C3%A4")),
            ("https://аpple.com/", Some("https://xn--pple-43d.com/")),
            ("file:///etc/passwd", None),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("vscode://file/x", None),
            ("https://", None),
            ("mailto:", None),
            ("example.com", None),
            ("https://a b.com", None),
            ("https://a.com/\x1b]8;;", None),
            ("https://a.com/\u{202e}gpj", None),
            ("https:\\\\evil.com", None),
            ("https://a.com/\nx", None),
            ("", None),
        ];
        for (address, target) in cases {
            assert_eq!(link_target(address).as_deref(), target, "{address:?}");
        }
    }

    #[test]
    fn a_long_address_is_no_link() {
        let address = |bytes: usize| format!("https://a.com/{}", "x".repeat(bytes - 14));
        assert!(link_target(&address(2048)).is_some());
        assert!(link_target(&address(2049)).is_none());
        // Each of these characters becomes six bytes.
        assert!(link_target(&format!("https://a.com/{}", "ä".repeat(400))).is_none());
    }

    #[test]
    fn the_host_is_what_a_click_reaches() {
        assert_eq!(link_host("https://github.com@evil.com/x").as_deref(), Some("evil.com"));
        assert_eq!(link_host("mailto:a@b.org").as_deref(), Some("a@b.org"));
    }
}
