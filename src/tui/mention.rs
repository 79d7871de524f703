//! The files, functions and types that are offered while one types behind an `@`, and the documents behind a `#`.
//!
//! The list follows the draft; it takes only the keys that choose, so that typing is never in its way. What fits is for
//! the link to say: it knows the workspace.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    app::{App, Effect, Focus, Mention, MentionOffer, ask_servers, effects::ask},
    widgets::{self, transcript::Item},
};
use crate::protocol::{Query, Reply, SymbolLocation, Turn};

/// Most entries in the list of a mention.
pub const MOST: usize = 10;

/// Lines of the list for functions and types when more files fit than there is room for.
const SYMBOLS: usize = 4;

/// Lines of the list for resources of servers.
const RESOURCES: usize = 3;

/// Most documents that are searched after a `#`; an older one is named by its address.
const MOST_SEARCHED: usize = 2000;

/// The word before the caret if it begins with the sign, without it, as a path is called.
fn pattern(app: &App, sign: char) -> Option<String> {
    let typed = typed(app, sign)?;
    let mut pattern = String::with_capacity(typed.len());
    for letter in typed.chars() {
        if letter.is_whitespace() && pattern.ends_with('\\') {
            pattern.pop();
        }
        pattern.push(letter);
    }
    Some(pattern)
}

/// The same as it was typed: a blank in it stands behind a backslash.
fn typed(app: &App, sign: char) -> Option<String> {
    if app.viewport.focus != Focus::Composer || !app.overlays.is_empty() {
        return None;
    }
    let before = app.composer.field.before_caret();
    let mut blanks = before.char_indices().rev().filter(|it| it.1.is_whitespace());
    let blank = blanks.find(|it| !before.get(..it.0).is_some_and(|it| it.ends_with('\\')));
    let word = blank.map_or(0, |it| it.0 + it.1.len_utf8());
    let word = before.get(word..).unwrap_or_default();
    let word = word.trim_start_matches(['(', '"', '\'', '[']);
    word.strip_prefix(sign).map(str::to_owned)
}

/// After a key: asks for the files that fit now, or takes the list away.
pub fn look(app: &mut App) -> Vec<Effect> {
    let Some(pattern) = pattern(app, '@').filter(|it| !is_address(it)) else {
        app.composer.mention = documents(app);
        // Older ones are offered when they have been read.
        return addressed_turn(app).map_or_else(Vec::new, |it| app.look_back_to(it));
    };
    if app.composer.mention.as_ref().is_some_and(|it| it.pattern == pattern) {
        return Vec::new();
    }
    let is_begun = app.composer.mention.is_none();
    // What was found before stays until the answer is there: the list must not flicker.
    let mention = app.composer.mention.get_or_insert_default();
    mention.pattern.clone_from(&pattern);
    mention.is_hidden = false;
    mention.takes_first = false;
    mention.is_documents = false;
    let (limit, asked) = (MOST, pattern.clone());
    let query = Query::Files {
        pattern: pattern.clone(),
        limit,
    };
    // A link that knows no files or symbols offers none.
    let mut effects = vec![ask!(query, Reply::Files, or_default, move |app, files| {
        offer(app, &asked, files);
        Vec::new()
    })];
    if is_begun {
        effects.push(ask_servers(fill));
    }
    if is_name(&pattern) {
        let query = Query::Symbols {
            pattern: pattern.clone(),
            limit,
        };
        effects.push(ask!(query, Reply::Symbols, or_default, move |app, symbols| {
            offer_symbols(app, &pattern, symbols);
            Vec::new()
        }));
    }
    effects
}

/// Returns the turn of the address that is typed.
fn addressed_turn(app: &App) -> Option<Turn> {
    let pattern = pattern(app, '#').or_else(|| pattern(app, '@'))?;
    let (turn, _) = pattern.split_once('.').filter(|_| is_address(&pattern))?;
    turn.parse().ok().map(Turn)
}

/// Returns true if the pattern may begin a name in code, rather than a path: `total`, `Cart::total`.
fn is_name(pattern: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || matches!(it, '_' | ':' | '.');
    pattern.chars().nth(1).is_some() && pattern.chars().all(is_part)
}

/// Returns true if the pattern may begin a document's address, and no file's name: `7.`, `7.3`.
fn is_address(pattern: &str) -> bool {
    let part = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    pattern
        .split_once('.')
        .is_some_and(|(turn, document)| !turn.is_empty() && part(turn) && part(document))
}

/// The documents that fit what is typed behind a `#`, or as an address behind an `@`, the newest first.
///
/// A `#` may be the beginning of a heading or of a number, so nothing is chosen by Enter unless somebody moved here.
fn documents(app: &App) -> Option<Mention> {
    let pattern = pattern(app, '#')
        .filter(|it| !it.starts_with('#'))
        .or_else(|| pattern(app, '@').filter(|it| is_address(it)))?;
    if let Some(before) = &app.composer.mention
        && before.is_documents
        && before.pattern == pattern
    {
        return Some(before.clone());
    }
    let wanted = pattern.to_lowercase();
    let documents = app
        .viewport
        .pane
        .items
        .iter()
        .rev()
        .take(MOST_SEARCHED)
        .filter_map(|item| {
            let Item::Document(place) = *item else { return None };
            let address = app.conversation.transcript.address(place)?.to_string();
            let about = widgets::summary(app.conversation.transcript.get(place)?).to_string();
            let fits = address.starts_with(&wanted) || (wanted.len() > 1 && about.to_lowercase().contains(&wanted));
            fits.then_some(MentionOffer {
                name: address.clone(),
                target: address,
                about,
                is_open: false,
            })
        });
    Some(Mention {
        found_for: Some(pattern.clone()),
        pattern,
        is_documents: true,
        offers: documents.take(MOST).collect(),
        ..Mention::default()
    })
}

/// Takes the files that were found for `asked`.
fn offer(app: &mut App, asked: &str, files: Vec<String>) {
    if pattern(app, '@').as_deref() != Some(asked) {
        return;
    }
    let before = app.composer.mention.take().filter(|it| it.pattern == asked);
    let before = before.unwrap_or_default();
    app.composer.mention = Some(Mention {
        pattern: asked.to_owned(),
        paths: files,
        found_for: Some(asked.to_owned()),
        at: 0,
        ..before
    });
    fill(app);
    let mention = app.composer.mention.as_ref();
    if mention.is_some_and(|it| it.takes_first && it.is_shown()) {
        choose(app);
    }
}

/// Takes the functions and types that were found; they follow the files.
fn offer_symbols(app: &mut App, asked: &str, symbols: Vec<SymbolLocation>) {
    let Some(mention) = app.composer.mention.as_mut().filter(|it| it.pattern == asked) else {
        return;
    };
    mention.symbols = symbols;
    mention.symbols_for = Some(asked.to_owned());
    fill(app);
}

/// Makes the list from the files and symbols found, and from what servers offer; an offer that was chosen already keeps its place.
fn fill(app: &mut App) {
    let Some(mention) = app.composer.mention.as_mut().filter(|it| !it.is_documents) else {
        return;
    };
    let wanted = mention.pattern.to_lowercase();
    let resources = app.composer.commands.resources.iter().filter(|it| {
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        // A blank would end the word.
        !it.mention.contains(char::is_whitespace) && (has(&it.mention) || has(&it.name))
    });
    let resources = resources.take(RESOURCES).map(|it| {
        let fixed = it.mention.split_once('{').map(|it| it.0);
        MentionOffer {
            name: it.mention.clone(),
            target: fixed.unwrap_or(&it.mention).to_owned(),
            about: it.name.clone(),
            is_open: fixed.is_some(),
        }
    });
    let resources: Vec<_> = resources.collect();
    let fits = mention.symbols_for.as_ref() == Some(&mention.pattern);
    let symbols = if fits { mention.symbols.as_slice() } else { &[] };
    let kept = MOST - SYMBOLS.min(symbols.len()) - resources.len();
    let kept = if mention.is_moved {
        kept.max(mention.at + 1)
    } else {
        kept
    };
    let files = mention.paths.iter().take(kept).map(|path| MentionOffer {
        name: path.clone(),
        target: path.clone(),
        ..MentionOffer::default()
    });
    let symbols = symbols.iter().map(|it| {
        let owner = it.owner.as_ref().map_or_else(String::new, |it| format!("{it} · "));
        let place = format!("{}:{}", it.path, it.first_line);
        MentionOffer {
            name: it.name.clone(),
            about: format!("{}   {owner}{place}", it.keyword),
            target: if it.first_line == it.last_line {
                place
            } else {
                format!("{place}-{}", it.last_line)
            },
            is_open: false,
        }
    });
    let symbols = symbols.take(MOST - resources.len());
    mention.offers = files.chain(resources).chain(symbols).take(MOST).collect();
    mention.at = mention.at.min(mention.offers.len().saturating_sub(1));
}

/// Puts the chosen file in the place of what was typed.
fn choose(app: &mut App) {
    let Some(mention) = app.composer.mention.take() else {
        return;
    };
    let Some(MentionOffer {
        target: file, is_open, ..
    }) = mention.offers.get(mention.at)
    else {
        return;
    };
    let typed = typed(app, '@').or_else(|| typed(app, '#'));
    let typed = typed.map_or_else(|| mention.pattern.chars().count(), |it| it.chars().count());
    let after = if file.ends_with('/') || *is_open { "" } else { " " };
    // What is pointed at ends with a blank.
    let mut name = String::with_capacity(file.len());
    for letter in file.chars() {
        if letter.is_whitespace() {
            name.push('\\');
        }
        name.push(letter);
    }
    if mention.is_documents {
        // Whichever sign it was looked for with, what quotes a document is a `#`.
        app.composer.field.replace_before(typed + 1, &format!("#{file}{after}"));
    } else {
        app.composer.field.replace_before(typed, &format!("{name}{after}"));
    }
    app.composer.put_in = Some(app.composer.field.version()).filter(|_| !after.is_empty());
}

/// Takes a key for the list; returns false if it is for something else.
pub fn key(app: &mut App, event: KeyEvent) -> bool {
    if app.viewport.focus != Focus::Composer {
        return false;
    }
    let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    // Lines of the file that was just put in: they belong to its name.
    if let Some(version) = app.composer.put_in.take()
        && event.code == KeyCode::Char(':')
        && app.composer.field.version() == version
    {
        app.composer.field.replace_before(1, "");
    }
    let Some(mention) = app.composer.mention.as_mut().filter(|it| !it.is_hidden) else {
        return false;
    };
    // Whoever types fast does not wait for the list, and means its first line.
    if event.code == KeyCode::Tab && event.modifiers.is_empty() && !mention.is_found() {
        mention.takes_first = true;
        return true;
    }
    if !mention.is_shown() {
        return false;
    }
    let count = mention.offers.len();
    let at = mention.at;
    match event.code {
        // It is no address as long as nobody says so.
        KeyCode::Enter if mention.is_documents && !mention.is_moved => {
            mention.is_hidden = true;
            return false;
        }
        KeyCode::Up => mention.at = (at + count - 1) % count,
        KeyCode::Down => mention.at = (at + 1) % count,
        KeyCode::Char('p') if ctrl => mention.at = (at + count - 1) % count,
        KeyCode::Char('n') if ctrl => mention.at = (at + 1) % count,
        KeyCode::Esc => mention.is_hidden = true,
        KeyCode::Tab | KeyCode::Enter if event.modifiers.is_empty() => {
            let Some(offer) = mention.offers.get(mention.at) else {
                return false;
            };
            // What is written out already is sent, and so is what the list is not yet for.
            if event.code == KeyCode::Enter && (offer.target == mention.pattern || !mention.is_found()) {
                mention.is_hidden = true;
                return false;
            }
            choose(app);
        }
        _ => return false,
    }
    if let Some(mention) = &mut app.composer.mention {
        mention.is_moved |= mention.at != at;
    }
    true
}
