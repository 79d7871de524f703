//! The rule above the draft, with the mode and the state of the conversation.

use crate::{
    locale::figure,
    protocol::{Mode, Progress},
    t,
    text::{Role, Sanitized, Span, width},
    tui::{
        app::{Composer, Conversation, Viewport},
        widgets::{
            composer::role_of,
            transcript::{Following, Item},
        },
    },
};

/// Returns the rule above the draft, `── mode ─────── state`. The first parts of the state go where there is little room.
pub fn spans(
    composer: &Composer,
    viewport: &Viewport,
    conversation: &Conversation,
    now_ms: u64,
    columns: usize,
) -> Vec<Span> {
    // The mode of the running answer; another one is for the next message.
    let mode = conversation.running_mode().unwrap_or(composer.mode);
    let asks_now = if conversation.is_busy() {
        conversation.asks_first()
    } else {
        composer.asks_first
    };
    let is_other = mode != composer.mode || mode == Mode::Agent && asks_now != composer.asks_first;
    let next = is_other.then(|| mode_word(composer.mode, composer.asks_first));
    let word = mode_word(mode, asks_now);
    let mut right = Parts::default();
    right.push_view(viewport);
    right.push_draft(composer);
    right.push_search(viewport);
    if conversation.is_unstored {
        right.push(t!("composer-unstored"), Role::Waiting);
    }
    if mode.is_read_only() {
        right.push(t!("composer-read-only"), Role::Dim);
    }
    if !composer.queue.is_empty() {
        right.push(&t!("composer-queued", count = composer.queue.len()), Role::Dim);
    }
    right.push_progress(conversation, now_ms);
    let mut right = right.0;
    let next = next.map_or_else(Sanitized::default, |it| {
        Sanitized::from(t!("composer-next-mode", mode = it))
    });
    let gap = usize::from(!next.is_empty());
    let head = 4 + width::width(word) + gap + width::width(&next);
    while width::spans_width(&right) + head + 4 > columns && !right.is_empty() {
        right.remove(0);
    }
    let taken = head + width::spans_width(&right) + if right.is_empty() { 0 } else { 3 };
    let mut spans = vec![
        Span::new(Sanitized::literal("── "), Role::Rule),
        Span::new(Sanitized::literal(word), role_of(mode)).bold(),
        Span::new(Sanitized::new(&" ".repeat(gap)), Role::Rule),
        Span::new(next, Role::Dim),
        Span::new(Sanitized::literal(" "), Role::Rule),
        Span::new(Sanitized::new(&"─".repeat(columns.saturating_sub(taken))), Role::Rule),
    ];
    if !right.is_empty() {
        spans.push(Span::new(Sanitized::literal(" "), Role::Rule));
        spans.extend(right);
    }
    spans
}

/// The mode's word, with a remark for the agent that asks first.
fn mode_word(mode: Mode, asks_first: bool) -> &'static str {
    if mode == Mode::Agent && asks_first {
        t!("composer-agent-asks")
    } else {
        mode.as_str()
    }
}

/// The state at the right of the rule, with gaps between its parts.
#[derive(Default)]
struct Parts(Vec<Span>);

impl Parts {
    fn push(&mut self, text: &str, role: Role) {
        if !self.0.is_empty() {
            self.0.push(Span::new(Sanitized::literal("  "), Role::Dim));
        }
        self.0.push(Span::new(Sanitized::line(text), role));
    }

    fn push_view(&mut self, viewport: &Viewport) {
        let pane = &viewport.pane;
        if pane.unseen > 0 && pane.follow != Following::End {
            self.push(&t!("composer-unseen", count = pane.unseen), Role::Link);
        }
    }

    fn push_draft(&mut self, composer: &Composer) {
        if composer.field.starts_with("!!") {
            self.push(t!("composer-shell-silent"), Role::Waiting);
        } else if composer.field.starts_with("!") {
            self.push(t!("composer-shell"), Role::Waiting);
        }
        if let Some(mode) = composer.field.vim_mode() {
            self.push(mode.as_str(), Role::Dim);
        }
    }

    fn push_search(&mut self, viewport: &Viewport) {
        if let Some(search) = &viewport.search {
            let is_at = |it: &Item| search.at.is_some_and(|(item, _)| item == *it);
            let place = search.hits.iter().position(is_at).map_or(0, |it| it + 1);
            let pattern = width::cut_end(&search.pattern, 24);
            let place = place.to_string();
            let text = t!(
                "composer-search",
                pattern = pattern,
                place = place,
                count = search.hits.len()
            );
            self.push(&text, Role::Waiting);
        }
        if !viewport.pane.filter.is_empty() {
            let text = t!("composer-filter", filter = viewport.pane.filter.words());
            self.push(&text, Role::Waiting);
        }
    }

    /// Adds the state of the answer: a question or plan that waits, its progress, the time since it began.
    fn push_progress(&mut self, conversation: &Conversation, now_ms: u64) {
        let transcript = &conversation.transcript;
        if transcript.open_question().is_some() || conversation.plan_to_build().is_some() {
            self.push(t!("composer-waiting"), Role::Waiting);
            return;
        }
        let seconds_to = |at_ms: u64| figure::pause(at_ms.saturating_sub(now_ms).div_ceil(1000));
        if !conversation.is_busy() {
            if let Some(Progress::Retrying { at_ms, .. }) = &transcript.progress {
                let time = seconds_to(*at_ms);
                self.push(&t!("composer-retry", time = time.as_str()), Role::Waiting);
            }
            return;
        }
        match &transcript.progress {
            Some(Progress::Connecting { peer }) => {
                self.push(&t!("composer-connecting", peer = peer.as_str()), Role::Dim);
            }
            Some(Progress::Waiting { .. }) => self.push(t!("composer-first-word"), Role::Dim),
            Some(Progress::Retrying {
                attempt,
                of,
                at_ms,
                because,
            }) => {
                let text = t!(
                    "composer-retrying",
                    because = width::cut_end(because, 48),
                    time = seconds_to(*at_ms).as_str(),
                    attempt = *attempt,
                    of = *of
                );
                self.push(&text, Role::Waiting);
            }
            Some(Progress::Stalled { silent_ms }) => {
                let text = t!("composer-silent", time = figure::duration(*silent_ms).as_str());
                self.push(&text, Role::Waiting);
            }
            Some(Progress::Idle) | None => self.push(t!("composer-working"), Role::Dim),
        }
        // In whole seconds, from the first one on.
        let elapsed_ms = now_ms.saturating_sub(transcript.exchanges.last().map_or(now_ms, |it| it.at_ms)) / 1000 * 1000;
        if elapsed_ms > 0 {
            self.push(figure::duration(elapsed_ms).as_str(), Role::Dim);
        }
    }
}
