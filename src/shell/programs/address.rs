//! The servers in addresses, read as the programs read them that take them.
//!
//! The text is what a program gets, after the shell has taken the quotes away. What programs read in different ways has no
//! server that is certain.

use crate::text::WordList;

/// The addresses that a program takes.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub schemes: WordList,
    pub bare: Bare,
}

/// An address without a scheme.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bare {
    /// `host/path`, as curl and wget have it.
    Web,
    /// `user@host`, as ssh has it.
    Login,
    /// `user@host:path`, as scp and rsync have it; without a colon it is a path on this machine.
    Path,
    /// The same for git, to which `name::address` is an address for a program.
    Git,
}

/// The end of an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Address {
    Server(String),
    /// A path on this machine.
    Here,
    Unknown,
}

impl Form {
    pub(super) fn read(self, word: &str) -> Address {
        let server = |host: Option<String>| host.map_or(Address::Unknown, Address::Server);
        let is_scheme = |it: &str| it.chars().all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it));
        if let Some((scheme, rest)) = word.split_once("://")
            && is_scheme(scheme)
        {
            let lower = scheme.to_ascii_lowercase();
            let is_web = matches!(lower.as_str(), "http" | "https");
            let is_known = self.schemes.contains(if is_web { &lower } else { scheme });
            return server(authority(rest, is_web).filter(|_| is_known));
        }
        match self.bare {
            // `user:password@host` is a path on a server for wget.
            Bare::Web => server(place(word.split('/').next().unwrap_or_default())),
            Bare::Login => server(login(word)),
            Bare::Path | Bare::Git => match word.split_once(':') {
                // A slash before the first colon makes it a path.
                Some((front, _)) if front.contains('/') => Address::Here,
                Some((_, rest)) if self.bare == Bare::Git && rest.starts_with(':') => Address::Unknown,
                Some((front, _)) => server(login(front)),
                None => Address::Here,
            },
        }
    }
}

/// The host behind `://`; `None` where it is not certain.
fn authority(rest: &str, is_web: bool) -> Option<String> {
    // Git and ssh end it at the slash alone, and decode `%2f` before that.
    let ends: &[char] = if is_web { &['/', '?', '#'] } else { &['/'] };
    let front = rest.split(ends).next()?;
    let (user, host) = front.rsplit_once('@').unwrap_or(("", front));
    let is_plain = is_user(user) && (is_web || !user.contains(['?', '#', '%']));
    place(host).filter(|_| is_plain)
}

/// `user@host`.
fn login(text: &str) -> Option<String> {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    name(host).filter(|_| is_user(user))
}

/// Returns true if all programs agree that a text before `@` is no host. Curl puts other texts in the place of braces and brackets.
fn is_user(text: &str) -> bool {
    !text.contains(|it: char| it.is_control() || it.is_whitespace() || "\\[]{}".contains(it))
}

/// `host` and `host:80`.
fn place(text: &str) -> Option<String> {
    let at = text.rfind(']').map_or(0, |it| it + 1);
    let (host, port) = match text.get(at..)?.find(':') {
        Some(colon) => (text.get(..at + colon)?, text.get(at + colon + 1..)?),
        None => (text, "80"),
    };
    let is_port = (1..=5).contains(&port.len()) && port.bytes().all(|it| it.is_ascii_digit());
    name(host).filter(|_| is_port)
}

/// A host in plain signs.
fn name(text: &str) -> Option<String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._".contains(it);
    let is_name = text.chars().all(is_plain) && !text.starts_with(['-', '.']);
    (is_name || text.starts_with('[')).then(|| host_of(text))?
}

/// A host as the network has it: lower case, in ASCII, an odd way to write an address resolved, no dot at its end.
pub fn host_of(text: &str) -> Option<String> {
    let text = text.trim_end_matches('.');
    let found = if text.starts_with('[') {
        // Nothing else in brackets is a host.
        url::Host::parse(text)
    } else if text.contains(':') {
        url::Host::parse(&format!("[{text}]"))
    } else {
        url::Host::parse(text)
    };
    found.ok().map(|it| it.to_string()).filter(|it| !it.is_empty())
}

/// Adds the servers of the addresses inside a text, such as code: where an address ends there is a guess, so there may be two.
/// Returns false if an address has none that is certain.
pub(super) fn inside(text: &str, add: &mut impl FnMut(String)) -> bool {
    let mut are_certain = true;
    for (at, sign) in text.match_indices("://") {
        let scheme = text.get(..at).unwrap_or_default();
        if !scheme.ends_with(|it: char| it.is_ascii_alphanumeric()) || scheme.ends_with("file") {
            continue;
        }
        let rest = text.get(at + sign.len()..).unwrap_or_default();
        let is_end = |it: char| it.is_whitespace() || "'\"`<>".contains(it);
        let certain = authority(rest.split(is_end).next().unwrap_or_default(), true);
        are_certain &= certain.is_some();
        certain.into_iter().chain(guess(rest)).for_each(&mut *add);
    }
    are_certain
}

/// The host at the front of a text, if what follows it may be anything.
pub(super) fn guess(text: &str) -> Option<String> {
    let is_end = |it: char| "/?#'\"`)>,;|&<(\\ \t\n$*{}".contains(it);
    let front = text.split(is_end).next().unwrap_or_default();
    let host = front.rsplit('@').next().unwrap_or_default();
    match host.find(']') {
        Some(at) => host_of(host.get(..=at)?),
        None => host_of(host.split(':').next()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: Form = Form {
        schemes: WordList("http https"),
        bare: Bare::Web,
    };
    const LOGIN: Form = Form {
        schemes: WordList("ssh"),
        bare: Bare::Login,
    };
    const PATH: Form = Form {
        schemes: WordList("scp"),
        bare: Bare::Path,
    };
    const GIT: Form = Form {
        schemes: WordList("git http https ssh"),
        bare: Bare::Git,
    };

    fn shown(form: Form, word: &str) -> String {
        match form.read(word) {
            Address::Server(host) => host,
            Address::Here => "here".to_owned(),
            Address::Unknown => "?".to_owned(),
        }
    }

    #[test]
    fn an_address_is_read_as_curl_and_wget_read_it() {
        for (word, expected) in [
            ("https://docs.rs/x", "docs.rs"),
            ("HTTPS://Docs.RS.:443", "docs.rs"),
            ("https://kim:pw@docs.rs:8443/x@evil.example", "docs.rs"),
            ("https://docs.rs?@evil.example", "docs.rs"),
            ("https://docs.rs#@evil.example", "docs.rs"),
            ("https://docs.rs/{a,b}[1-3]", "docs.rs"),
            ("https://docs.rs,@evil.example/x", "evil.example"),
            ("https://docs.rs;@evil.example/x", "evil.example"),
            ("https://docs.rs&x@evil.example/x", "evil.example"),
            ("https://docs.rs$@evil.example/x", "evil.example"),
            ("https://docs.rs(@evil.example/x", "evil.example"),
            ("https://docs.rs:80@evil.example/x", "evil.example"),
            ("https://docs.rs%2f@evil.example/x", "evil.example"),
            ("https://docs.rs@a.example@evil.example/x", "evil.example"),
            ("http://[::1]:8080/x", "[::1]"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("docs.rs/x", "docs.rs"),
            ("docs.rs:80/?u=https://evil.example", "docs.rs"),
            ("intranet/x@y", "intranet"),
            ("localhost:3000", "localhost"),
            ("https://docs.rs\\@evil.example", "?"),
            ("https://docs.rs @evil.example", "?"),
            ("https://docs.rs\\x", "?"),
            ("https://[a-b].evil.example/x", "?"),
            ("https://[a-b]/x", "?"),
            ("https://[::1].evil.example/x", "?"),
            ("https://{a,b}.evil.example/x", "?"),
            ("https://{a@,evil.example/}docs.rs/", "?"),
            ("https://docs.rs%2eevil.example", "?"),
            ("https://docs.rs;evil.example", "?"),
            ("https://docs.rs:/x", "?"),
            ("https://docs.rs:x/x", "?"),
            ("https://b\u{fc}cher.example", "?"),
            ("https:///evil.example/x", "?"),
            ("http:/a@evil", "?"),
            ("http:\\\\evil.example", "?"),
            ("a:b@intranet", "?"),
            ("docs.rs:x", "?"),
            ("ftp://docs.rs/x", "?"),
            ("file:///etc/hosts", "?"),
            (" https://docs.rs", "?"),
            ("-x", "?"),
            ("", "?"),
        ] {
            assert_eq!(shown(WEB, word), expected, "{word}");
        }
    }

    #[test]
    fn an_address_is_read_as_ssh_scp_and_git_read_it() {
        for (form, word, expected) in [
            (LOGIN, "me@docs.rs", "docs.rs"),
            (LOGIN, "build", "build"),
            (LOGIN, "ssh://me@docs.rs:22", "docs.rs"),
            (LOGIN, "me@docs.rs/@evil.example", "evil.example"),
            (LOGIN, "a:b@evil", "evil"),
            (LOGIN, "docs.rs:22", "?"),
            (LOGIN, "SSH://me@docs.rs", "?"),
            (PATH, "me@docs.rs:x", "docs.rs"),
            (PATH, "docs.rs::module/x", "docs.rs"),
            (PATH, "evil.example:x@docs.rs", "evil.example"),
            (PATH, "me@docs.rs@evil.example:x", "evil.example"),
            (PATH, "scp://me@docs.rs:22/x", "docs.rs"),
            (PATH, "SCP://evil@docs.rs/x", "?"),
            (PATH, ":x", "?"),
            (PATH, "a/b@c:d", "here"),
            (PATH, "x", "here"),
            (GIT, "git@github.com:kim/shop.git", "github.com"),
            (GIT, "evil.example:x@docs.rs", "evil.example"),
            (GIT, "docs.rs:x://evil.example", "docs.rs"),
            (GIT, "ssh://git@[::1]:22/x", "[::1]"),
            (GIT, "ssh://docs.rs?x@evil.example/y", "?"),
            (GIT, "ssh://evil.example%2f@docs.rs/x", "?"),
            (GIT, "ext::sh -c x", "?"),
            (GIT, "https::https://docs.rs/x", "?"),
            (GIT, "own://docs.rs/x", "?"),
            (GIT, "file:///srv/x", "?"),
            (GIT, "../x", "here"),
            (GIT, "./a:b", "here"),
        ] {
            assert_eq!(shown(form, word), expected, "{word}");
        }
    }

    #[test]
    fn a_text_names_servers_by_what_looks_like_an_address() {
        let check = |text: &str| {
            let mut found = Vec::new();
            let is_certain = inside(text, &mut |it| {
                if !found.contains(&it) {
                    found.push(it);
                }
            });
            format!("{}{}", found.join(" "), if is_certain { "" } else { " ?" })
        };
        for (text, expected) in [
            ("get(\"https://a.example/x\")", "a.example"),
            ("https://a.example, https://b.example.", "a.example b.example ?"),
            ("git+https://docs.rs,@evil.example/x", "evil.example docs.rs"),
            ("git+ssh://git@github.com:kim/shop.git", "github.com ?"),
            ("https://b\u{fc}cher.example", "xn--bcher-kva.example ?"),
            ("https://[a-b].example", " ?"),
            ("http://[::1]:80/", "[::1]"),
            ("file:///etc/hosts", ""),
            ("a://", " ?"),
            ("x", ""),
        ] {
            assert_eq!(check(text), expected, "{text}");
        }
    }
}
