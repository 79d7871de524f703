//! Maps roles to styles. Colours are named nowhere else.
//!
//! A theme is a file of roles and grounds (`themes/*.toml`). The styles are computed once for a background and a colour
//! depth, so [`Theme::style`] is a table lookup. Every entry is legible: a role without enough contrast on a ground is
//! moved towards white or black until it has it.

#![expect(clippy::disallowed_types, reason = "this module is where colours are named")]

mod choice;
mod colour;
mod file;
mod syntax;

use std::sync::Arc;

use ratatui::style::{self, Color, Style};

use crate::text::{Background, Modifier, Role};

pub use choice::{Depth, KnownBackground, TerminalEnvironment, choose, recall, remember};
pub use colour::{Rgb, of_index};
pub use file::{load, names};
pub use syntax::{Syntax, syntax};

/// Built-in themes: name and file content.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("sheaf-dark", include_str!("../../themes/sheaf-dark.toml")),
    ("sheaf-light", include_str!("../../themes/sheaf-light.toml")),
    ("terminal", include_str!("../../themes/terminal.toml")),
    ("catppuccin-mocha", include_str!("../../themes/catppuccin-mocha.toml")),
    ("catppuccin-latte", include_str!("../../themes/catppuccin-latte.toml")),
    ("clear-dark", include_str!("../../themes/clear-dark.toml")),
    ("clear-light", include_str!("../../themes/clear-light.toml")),
    ("dracula", include_str!("../../themes/dracula.toml")),
    ("gruvbox-dark", include_str!("../../themes/gruvbox-dark.toml")),
    ("gruvbox-light", include_str!("../../themes/gruvbox-light.toml")),
    (
        "high-contrast-dark",
        include_str!("../../themes/high-contrast-dark.toml"),
    ),
    (
        "high-contrast-light",
        include_str!("../../themes/high-contrast-light.toml"),
    ),
    ("nord", include_str!("../../themes/nord.toml")),
    ("solarized-dark", include_str!("../../themes/solarized-dark.toml")),
    ("solarized-light", include_str!("../../themes/solarized-light.toml")),
    ("tokyo-night", include_str!("../../themes/tokyo-night.toml")),
];

/// Generates a table of names and values, and a function that returns a value's index in it: `None` for values that only
/// the output of commands has.
macro_rules! indexed {
    ($(#[$doc:meta])* $table:ident: $type:ident, $index:ident, $indices:ident { $($value:ident = $name:literal,)* }) => {
        $(#[$doc])*
        pub const $table: [(&str, $type); [$($name),*].len()] = [$(($name, $type::$value)),*];

        #[derive(Clone, Copy)]
        enum $indices { $($value,)* }

        const fn $index(value: $type) -> Option<usize> {
            match value {
                $($type::$value => Some($indices::$value as usize),)*
                _ => None,
            }
        }
    };
}

indexed! {
    /// Roles that a theme styles, with their names in its file.
    ROLES: Role, role_index, RoleIndex {
        Text = "text", Strong = "strong", Dim = "dim", Faint = "faint", Rule = "rule", User = "user", Accent = "accent",
        Waiting = "waiting", Link = "link", Error = "error", Done = "done", Added = "added", Removed = "removed",
        Code = "code", Number = "number", Keyword = "keyword", Type = "type", Function = "function", String = "string",
        Comment = "comment", ModeAgent = "mode.agent", ModePlan = "mode.plan", ModeAsk = "mode.ask",
        ModeDebug = "mode.debug",
    }
}

indexed! {
    /// Backgrounds that a theme styles, with their names in its file. The terminal's own comes first and has no name.
    GROUNDS: Background, ground_index, GroundIndex {
        Plain = "", Selection = "selection", Added = "added.line", AddedWord = "added.word", Removed = "removed.line",
        RemovedWord = "removed.word",
    }
}

/// Returns the WCAG contrast that a role must reach on a ground.
pub const fn contrast_needed(role: Role, ground: Background) -> f32 {
    match (role, ground) {
        (Role::Faint | Role::Rule, _) | (_, Background::AddedWord | Background::RemovedWord) => 3.0,
        _ => 4.5,
    }
}

/// Style of one role or ground in a theme file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RoleStyle {
    tint: ThemeColour,
    modifiers: style::Modifier,
}

/// Colour in a theme file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThemeColour {
    /// The terminal's default colour.
    Default,
    Index(u8),
    Rgb {
        colour: Rgb,
        /// Replacement among 256 colours, if the nearest is not the best.
        index: Option<u8>,
    },
}

/// A theme as written, independent of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Palette {
    name: String,
    /// Background that the author assumed. `None`: the theme works on any.
    background: Option<Rgb>,
    roles: [RoleStyle; ROLES.len()],
    grounds: [RoleStyle; GROUNDS.len()],
}

/// Styles of all roles on all grounds, for one background and colour depth. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Theme {
    palette: Arc<Palette>,
    depth: Depth,
    /// Background that the terminal reported.
    reported: Option<Rgb>,
    table: Arc<StyleTable>,
}

#[derive(Debug)]
struct StyleTable {
    /// Background that the styles are computed for; `None` if unknown.
    background: Option<Rgb>,
    /// Colour of each ground; `None` if unknown.
    grounds: [Option<Rgb>; GROUNDS.len()],
    styles: [[Style; GROUNDS.len()]; ROLES.len()],
    /// Grounds alone, for a role that has its own colour.
    bare: [Style; GROUNDS.len()],
}

/// Returns a colour's channels; `None` for the ANSI colours, which belong to the terminal.
fn rgb(colour: Color) -> Option<Rgb> {
    match colour {
        Color::Rgb(red, green, blue) => Some(Rgb(red, green, blue)),
        Color::Indexed(index) => colour::of_index(index),
        _ => None,
    }
}

impl Theme {
    fn new(palette: Arc<Palette>, depth: Depth, reported: Option<Rgb>) -> Self {
        let table = Arc::new(StyleTable::new(&palette, depth, reported));
        Self {
            palette,
            depth,
            reported,
            table,
        }
    }

    /// Returns one of [`BUILT_IN`] in 24-bit colours.
    pub fn built_in(name: &str) -> Option<Self> {
        let (name, text) = BUILT_IN.iter().find(|it| it.0 == name)?;
        let source = crate::config::SourceText {
            path: name.as_ref(),
            text,
        };
        let (palette, problems) = file::parse(name, &source, true);
        debug_assert_eq!(problems, []);
        Some(Self::new(Arc::new(palette), Depth::True, None))
    }

    #[cfg(test)]
    pub fn name(&self) -> &str {
        &self.palette.name
    }

    /// Returns the text colour of a role, for an HTML page; `None` for the page's default.
    pub fn colour(&self, role: Role) -> Option<Rgb> {
        rgb(self.style(role, Modifier::default(), Background::Plain).fg?)
    }

    /// Returns the colour of a ground, for an HTML page; `None` for the page's own.
    pub fn background_of(&self, ground: Background) -> Option<Rgb> {
        rgb(self.style(Role::Text, Modifier::default(), ground).bg?)
    }

    /// Returns the background that the styles are computed for: the reported one, else the author's.
    pub fn background(&self) -> Option<Rgb> {
        self.table.background
    }

    /// Returns the theme with styles legible on `background`, as the terminal reported it.
    pub fn adapted(&self, background: Rgb) -> Self {
        if self.reported == Some(background) {
            return self.clone();
        }
        Self::new(Arc::clone(&self.palette), self.depth, Some(background))
    }

    /// Returns the theme with at most the colours of `depth`.
    pub fn with_depth(&self, depth: Depth) -> Self {
        if self.depth == depth {
            return self.clone();
        }
        Self::new(Arc::clone(&self.palette), depth, self.reported)
    }

    /// Returns the style of a role with `mark` on a ground. The plain ground sets no background, so the one below
    /// shows.
    pub fn style(&self, role: Role, mark: Modifier, ground: Background) -> Style {
        let style = match (role_index(role), ground_index(ground)) {
            (Some(role), Some(ground)) => self.table.styles[role][ground],
            _ => self.style_of_output(role, ground),
        };
        marked(style, mark)
    }

    /// Computes a style with a colour that a command printed, as role or as ground.
    fn style_of_output(&self, role: Role, ground: Background) -> Style {
        let (mut style, behind) = match ground {
            Background::Indexed(index) => (on(self.index(index)), colour::of_index(index)),
            Background::Rgb(red, green, blue) => {
                let colour = Rgb(red, green, blue);
                (on(self.plain(colour)), Some(colour))
            }
            _ => {
                let index = ground_index(ground).unwrap_or_default();
                (self.table.bare[index], self.table.grounds[index])
            }
        };
        let needed = contrast_needed(role, ground);
        let push = |colour: Rgb| behind.map_or(colour, |it| colour.legible_on(it, needed));
        style.fg = match role {
            Role::Indexed(index) => match colour::of_index(index) {
                Some(colour) if push(colour) != colour => self.shown(push(colour), behind, needed),
                Some(_) | None => self.index(index),
            },
            Role::Rgb(red, green, blue) => self.shown(push(Rgb(red, green, blue)), behind, needed),
            Role::Picture(red, green, blue) => Some(Color::Rgb(red, green, blue)),
            _ => {
                let index = role_index(role).unwrap_or_default();
                let paint = self.palette.roles[index];
                style = style.add_modifier(self.table.styles[index][0].add_modifier);
                match (paint.tint, behind) {
                    // The ground is an ANSI colour, which may be anything; the command's own text there has the default
                    // colour.
                    (ThemeColour::Rgb { .. } | ThemeColour::Default, None) => self.default_colour(),
                    (ThemeColour::Rgb { colour, .. }, Some(_)) => self.shown(push(colour), behind, needed),
                    (ThemeColour::Default, Some(behind)) => match self.table.background {
                        Some(_) => self.shown(
                            if behind.is_dark() { Rgb::WHITE } else { Rgb::BLACK },
                            Some(behind),
                            needed,
                        ),
                        None => self.default_colour(),
                    },
                    (ThemeColour::Index(index), _) => self.index(index),
                }
            }
        };
        style
    }

    fn default_colour(&self) -> Option<Color> {
        (self.depth != Depth::None).then_some(Color::Reset)
    }

    fn index(&self, index: u8) -> Option<Color> {
        match (self.depth, colour::of_index(index)) {
            (Depth::None, _) => None,
            (Depth::Sixteen, Some(colour)) => Some(Color::Indexed(colour::nearest_of_sixteen(colour))),
            (Depth::Sixteen | Depth::Indexed | Depth::True, _) => Some(Color::Indexed(index)),
        }
    }

    fn plain(&self, colour: Rgb) -> Option<Color> {
        self.shown(colour, None, 1.0)
    }

    /// Returns the nearest colour that this depth can show and that is still legible on `behind`.
    fn shown(&self, colour: Rgb, behind: Option<Rgb>, needed: f32) -> Option<Color> {
        match self.depth {
            Depth::None => None,
            Depth::Sixteen => Some(Color::Indexed(colour::nearest_of_sixteen(colour))),
            Depth::Indexed => {
                let passes = |it: Rgb| behind.is_none_or(|behind| it.contrast(behind) >= needed);
                Some(Color::Indexed(colour::nearest_index(colour, passes)))
            }
            Depth::True => Some(Color::Rgb(colour.0, colour.1, colour.2)),
        }
    }
}

impl Default for Theme {
    fn default() -> Self {
        Self::built_in("sheaf-dark").expect("it is in the table of built-in themes")
    }
}

impl StyleTable {
    fn new(palette: &Palette, depth: Depth, reported: Option<Rgb>) -> Self {
        let background = reported.or(palette.background);
        // Without colours a theme uses modifiers, and with 16 colours the terminal's palette.
        let paints: [RoleStyle; GROUNDS.len()] =
            std::array::from_fn(|it| reduce_to_depth(palette.grounds[it], depth, PaletteSlot::Background(it)));
        let mut grounds = [None; GROUNDS.len()];
        let mut bare = [Style::new(); GROUNDS.len()];
        for (index, paint) in paints.iter().enumerate() {
            let (style, colour) = match paint.tint {
                ThemeColour::Default => (Style::new(), if paint.modifiers.is_empty() { background } else { None }),
                ThemeColour::Index(it) => (on(Some(Color::Indexed(it))), colour::of_index(it)),
                ThemeColour::Rgb {
                    colour,
                    index: alternative,
                } => {
                    let role = palette.roles[TINT_ROLES[index]].tint;
                    match adapt_ground(
                        colour,
                        alternative,
                        palette.background,
                        background,
                        role,
                        depth,
                        &grounds,
                    ) {
                        ShownColour::Index(it) => (on(Some(Color::Indexed(it))), colour::of_index(it)),
                        ShownColour::Rgb(it) => (on(Some(Color::Rgb(it.0, it.1, it.2))), Some(it)),
                    }
                }
            };
            bare[index] = style.add_modifier(paint.modifiers);
            grounds[index] = colour;
        }
        let styles = std::array::from_fn(|role| {
            let paint = reduce_to_depth(palette.roles[role], depth, PaletteSlot::Role(role));
            std::array::from_fn(|ground| {
                let behind = grounds[ground];
                let needed = contrast_needed(ROLES[role].1, GROUNDS[ground].1);
                let fg = match paint.tint {
                    ThemeColour::Default if depth == Depth::None => None,
                    // The default text colour fits the default background; on another it may be invisible.
                    ThemeColour::Default => match (ground, behind) {
                        (0, _) | (_, None) => Some(Color::Reset),
                        (_, Some(behind)) if bare[ground].bg.is_some() && depth != Depth::Sixteen => {
                            Some(if behind.is_dark() {
                                Color::Indexed(231)
                            } else {
                                Color::Indexed(16)
                            })
                        }
                        (_, Some(_)) => Some(Color::Reset),
                    },
                    ThemeColour::Index(it) => Some(match (colour::of_index(it), behind) {
                        (Some(colour), Some(behind)) if colour.contrast(behind) < needed => {
                            Color::Indexed(colour::nearest_index(colour, |it| it.contrast(behind) >= needed))
                        }
                        _ => Color::Indexed(it),
                    }),
                    ThemeColour::Rgb { colour, index } => {
                        let pushed = behind.map_or(colour, |it| colour.legible_on(it, needed));
                        let passes = |it: Rgb| behind.is_none_or(|behind| it.contrast(behind) >= needed);
                        Some(match depth {
                            Depth::Indexed => Color::Indexed(
                                index
                                    .filter(|&it| colour::of_index(it).is_some_and(passes))
                                    .unwrap_or_else(|| colour::nearest_index(pushed, passes)),
                            ),
                            Depth::True | Depth::Sixteen | Depth::None => Color::Rgb(pushed.0, pushed.1, pushed.2),
                        })
                    }
                };
                let mut style = bare[ground];
                style.fg = fg;
                toggled(style, paint.modifiers)
            })
        });
        Self {
            background,
            grounds,
            styles,
            bare,
        }
    }
}

/// Index of the role whose colour tints a ground if the ground's own colour does not fit the terminal's background.
const TINT_ROLES: [usize; GROUNDS.len()] = [ROLE_TEXT, ROLE_TEXT, ROLE_ADDED, ROLE_ADDED, ROLE_REMOVED, ROLE_REMOVED];
const ROLE_TEXT: usize = RoleIndex::Text as usize;
const ROLE_ADDED: usize = RoleIndex::Added as usize;
const ROLE_REMOVED: usize = RoleIndex::Removed as usize;

#[derive(Clone, Copy)]
enum PaletteSlot {
    Role(usize),
    Background(usize),
}

enum ShownColour {
    Index(u8),
    Rgb(Rgb),
}

/// Reduces a style to few or no colours, with the `terminal` theme's choice for its role.
fn reduce_to_depth(paint: RoleStyle, depth: Depth, slot: PaletteSlot) -> RoleStyle {
    let spare = |palette: &Palette| match slot {
        PaletteSlot::Role(it) => palette.roles[it],
        PaletteSlot::Background(it) => palette.grounds[it],
    };
    match (depth, paint.tint) {
        (Depth::True | Depth::Indexed, _)
        | (Depth::Sixteen, ThemeColour::Default | ThemeColour::Index(0..=15))
        | (Depth::None, ThemeColour::Default) => paint,
        (Depth::Sixteen, ThemeColour::Index(_) | ThemeColour::Rgb { .. }) => {
            let spare = spare(terminal());
            RoleStyle {
                tint: spare.tint,
                modifiers: spare.modifiers | paint.modifiers,
            }
        }
        (Depth::None, ThemeColour::Index(_) | ThemeColour::Rgb { .. }) => RoleStyle {
            tint: ThemeColour::Default,
            modifiers: spare(terminal()).modifiers | paint.modifiers,
        },
    }
}

/// The `terminal` theme, which has no colours beyond the ANSI ones: every theme's fallback.
fn terminal() -> &'static Palette {
    static TERMINAL: std::sync::LazyLock<Palette> = std::sync::LazyLock::new(|| {
        let theme = Theme::built_in("terminal").expect("it is in the table of built-in themes");
        Palette::clone(&theme.palette)
    });
    &TERMINAL
}

/// Adapts a ground's colour to the actual background, with the contrast that the author gave it.
fn adapt_ground(
    colour: Rgb,
    alternative: Option<u8>,
    designed: Option<Rgb>,
    background: Option<Rgb>,
    tint_role: ThemeColour,
    depth: Depth,
    taken: &[Option<Rgb>],
) -> ShownColour {
    let (Some(designed), Some(background)) = (designed, background) else {
        return match depth {
            Depth::Indexed => {
                ShownColour::Index(alternative.unwrap_or_else(|| colour::nearest_index(colour, |_| true)))
            }
            Depth::True | Depth::Sixteen | Depth::None => ShownColour::Rgb(colour),
        };
    };
    let fits = designed.is_dark() == background.is_dark();
    let adapted = if designed == background {
        colour
    } else if fits {
        let shift = |it: u8, from: u8, to: u8| (i16::from(it) - i16::from(from) + i16::from(to)).clamp(0, 255) as u8;
        Rgb(
            shift(colour.0, designed.0, background.0),
            shift(colour.1, designed.1, background.1),
            shift(colour.2, designed.2, background.2),
        )
    } else {
        let tint = match tint_role {
            ThemeColour::Rgb { colour, .. } => colour,
            ThemeColour::Default | ThemeColour::Index(_) => colour,
        };
        background.toward(tint, 24)
    };
    let apart = colour.contrast(designed).min(1.9);
    let adapted = if designed == background {
        adapted
    } else {
        adapted.legible_on(background, apart)
    };
    match depth {
        Depth::Indexed => {
            let free = |it: Rgb| !taken.contains(&Some(it)) && it.differs_visibly(background);
            // Added must stay greenish and removed reddish, although a grey is often nearer.
            let lean = |it: Rgb| i16::from(it.1) - i16::from(it.0);
            let leans = |it: Rgb| lean(adapted).abs() < 8 || lean(it).signum() == lean(adapted).signum();
            let fixed = alternative.filter(|&it| fits && colour::of_index(it).is_some_and(free));
            ShownColour::Index(fixed.unwrap_or_else(|| colour::nearest_index(adapted, |it| free(it) && leans(it))))
        }
        Depth::True | Depth::Sixteen | Depth::None => ShownColour::Rgb(adapted),
    }
}

fn on(colour: Option<Color>) -> Style {
    Style {
        bg: colour,
        ..Style::new()
    }
}

fn marked(style: Style, mark: Modifier) -> Style {
    let mut modifiers = style::Modifier::empty();
    for (one, modifier) in [
        (Modifier::BOLD, style::Modifier::BOLD),
        (Modifier::ITALIC, style::Modifier::ITALIC),
        (Modifier::UNDERLINE, style::Modifier::UNDERLINED),
        (Modifier::STRIKE, style::Modifier::CROSSED_OUT),
        (Modifier::REVERSE, style::Modifier::REVERSED),
        (Modifier::FAINT, style::Modifier::DIM),
    ] {
        if mark.contains(one) {
            modifiers |= modifier;
        }
    }
    toggled(style, modifiers)
}

/// Adds modifiers. Reversing what is reversed already turns it back, so that it still stands out.
fn toggled(mut style: Style, modifiers: style::Modifier) -> Style {
    let reversed = (style.add_modifier ^ modifiers) & style::Modifier::REVERSED;
    style.add_modifier = ((style.add_modifier | modifiers) - style::Modifier::REVERSED) | reversed;
    style
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    const ALL_GROUNDS: [Background; 6] = [
        Background::Plain,
        Background::Selection,
        Background::Added,
        Background::AddedWord,
        Background::Removed,
        Background::RemovedWord,
    ];

    fn rgb(colour: Option<Color>) -> Option<Rgb> {
        match colour? {
            Color::Rgb(red, green, blue) => Some(Rgb(red, green, blue)),
            Color::Indexed(index) => colour::of_index(index),
            _ => None,
        }
    }

    /// Greys in steps of eight, the extremes, and the backgrounds of themes that people use.
    fn backgrounds() -> Vec<Rgb> {
        let greys = (0..=255_u8).step_by(8).map(|it| Rgb(it, it, it));
        let used = [
            "000000", "ffffff", "1e1e1e", "002b36", "073642", "fdf6e3", "eee8d5", "282828", "1d2021", "fbf1c7",
            "f9f5d7", "2e3440", "3b4252", "eceff4", "282a36", "44475a", "1a1b26", "24283b", "e1e2e7", "1e1e2e",
            "eff1f5", "272822", "0d1117", "f6f8fa", "191724", "faf4ed", "2d2a2e", "300a24", "012456", "0000ff",
            "ff0000", "00ff00", "ffff00", "777777", "767676", "5f5f5f", "804040", "408040",
        ];
        greys.chain(used.into_iter().filter_map(Rgb::parse)).collect()
    }

    /// The themes that name colours, each with the background it was drawn on.
    fn drawn() -> Vec<(&'static str, Rgb)> {
        let names = BUILT_IN.iter().map(|it| it.0);
        let drawn = names.filter_map(|it| Some((it, Theme::built_in(it)?.background()?)));
        let drawn: Vec<_> = drawn.collect();
        assert!(drawn.len() >= 12, "{drawn:?}");
        drawn
    }

    /// Every look of `theme` that falls short of its contrast.
    fn illegible(theme: &Theme, background: Rgb) -> Vec<String> {
        let mut found = Vec::new();
        for (name, role) in ROLES {
            for ground in ALL_GROUNDS {
                let style = theme.style(role, Modifier::NONE, ground);
                let front = rgb(style.fg).expect("a fixed colour");
                let behind = match ground {
                    Background::Plain => background,
                    _ => rgb(style.bg).expect("a fixed colour"),
                };
                // Written again on purpose, from the ruling and not from the code.
                let word = matches!(ground, Background::AddedWord | Background::RemovedWord);
                let needed = if word || name == "faint" || name == "rule" {
                    3.0
                } else {
                    4.5
                };
                let contrast = front.contrast(behind);
                if contrast < needed {
                    found.push(format!(
                        "{name} on {ground:?} of {background}: {front} on {behind} has {contrast:.2}"
                    ));
                }
            }
        }
        found
    }

    #[test]
    fn every_role_is_legible_on_every_ground_of_every_background() {
        let backgrounds = backgrounds();
        assert!(backgrounds.len() >= 60);
        let nothing: Vec<String> = Vec::new();
        for (name, designed) in drawn() {
            for depth in [Depth::True, Depth::Indexed] {
                let theme = Theme::built_in(name).expect("built in").with_depth(depth);
                assert_eq!(illegible(&theme, designed), nothing, "{name} as designed");
                for &background in &backgrounds {
                    assert_eq!(
                        illegible(&theme.adapted(background), background),
                        nothing,
                        "{name} {depth:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn grounds_are_seen_and_told_apart_on_every_background() {
        for (name, own) in drawn() {
            for depth in [Depth::True, Depth::Indexed] {
                let theme = Theme::built_in(name).expect("built in").with_depth(depth);
                // Ours are chosen for any background; the others for who has theirs.
                let is_ours = name.starts_with("sheaf-");
                for background in if is_ours { backgrounds() } else { vec![own] } {
                    let theme = theme.adapted(background);
                    let mut seen = vec![background];
                    for ground in ALL_GROUNDS.into_iter().skip(1) {
                        let colour = rgb(theme.style(Role::Text, Modifier::NONE, ground).bg).expect("a colour");
                        // A hue is seen without a difference in lightness too.
                        let hue = [
                            (colour.0, background.0),
                            (colour.1, background.1),
                            (colour.2, background.2),
                        ];
                        let hue = hue.into_iter().map(|(one, two)| one.abs_diff(two)).max();
                        let visible = colour.contrast(background) >= 1.08 || hue >= Some(48);
                        assert!(visible, "{name} {depth:?}: {ground:?} {colour} on {background}");
                        assert!(
                            !seen.contains(&colour),
                            "{name} {depth:?} {background}: {ground:?} is {colour} too"
                        );
                        seen.push(colour);
                    }
                }
            }
        }
    }

    #[test]
    fn on_its_own_background_a_theme_looks_as_it_was_drawn() {
        let theme = Theme::built_in("sheaf-dark")
            .expect("built in")
            .adapted(Rgb(0x1e, 0x1e, 0x1e));
        let look = |role, ground| {
            let style = theme.style(role, Modifier::NONE, ground);
            let text = |it: Option<Color>| rgb(it).map_or_else(|| "-".to_owned(), |it| it.to_string());
            format!("{} {}", text(style.fg), text(style.bg))
        };
        assert_eq!(look(Role::Text, Background::Plain), "d5d9e2 -");
        assert_eq!(look(Role::ModePlan, Background::Plain), "e3b565 -");
        assert_eq!(look(Role::Strong, Background::Selection), "f2f4f8 262b35");
        assert_eq!(look(Role::Keyword, Background::Added), "c099e6 1d3328");
        assert_eq!(look(Role::Text, Background::RemovedWord), "d5d9e2 6a3038");
    }

    #[test]
    fn an_adapted_theme_forgets_the_background_before() {
        let theme = Theme::default();
        let there_and_back = theme.adapted(Rgb::WHITE).adapted(Rgb(0x1e, 0x1e, 0x1e));
        let direct = theme.adapted(Rgb(0x1e, 0x1e, 0x1e));
        assert_eq!(there_and_back.table.styles, direct.table.styles);
        assert_eq!(theme.background(), Some(Rgb(0x1e, 0x1e, 0x1e)));
        assert_eq!(theme.adapted(Rgb::WHITE).background(), Some(Rgb::WHITE));
    }

    #[test]
    fn the_terminals_own_theme_names_no_fixed_colour() {
        for depth in [Depth::True, Depth::Indexed, Depth::Sixteen] {
            for reported in [None, Some(Rgb::BLACK), Some(Rgb::WHITE)] {
                let theme = Theme::built_in("terminal").expect("built in").with_depth(depth);
                let theme = reported.map_or(theme.clone(), |it| theme.adapted(it));
                for (name, role) in ROLES {
                    for ground in ALL_GROUNDS {
                        let style = theme.style(role, Modifier::NONE, ground);
                        for colour in [style.fg, style.bg].into_iter().flatten() {
                            let own = matches!(colour, Color::Reset | Color::Indexed(0..=15));
                            assert!(own, "{name} on {ground:?}: {colour:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn with_sixteen_colours_every_theme_uses_the_terminals_own() {
        for (name, _) in BUILT_IN {
            let theme = Theme::built_in(name).expect("built in").with_depth(Depth::Sixteen);
            let terminal = Theme::built_in("terminal")
                .expect("built in")
                .with_depth(Depth::Sixteen);
            assert_eq!(theme.table.styles, terminal.table.styles, "{name}");
        }
    }

    #[test]
    fn without_colours_every_meaning_that_no_sign_carries_survives() {
        for (name, _) in BUILT_IN {
            let theme = Theme::built_in(name).expect("built in").with_depth(Depth::None);
            for (role_name, role) in ROLES {
                for ground in ALL_GROUNDS {
                    let style = theme.style(role, Modifier::NONE, ground);
                    assert_eq!((style.fg, style.bg), (None, None), "{name}: {role_name} on {ground:?}");
                }
            }
            for (role, ground) in [
                (Role::Rgb(1, 2, 3), Background::Rgb(200, 200, 200)),
                (Role::Indexed(9), Background::Indexed(22)),
                (Role::Indexed(99), Background::Selection),
                (Role::Text, Background::Rgb(9, 9, 9)),
            ] {
                let style = theme.style(role, Modifier::NONE, ground);
                assert_eq!((style.fg, style.bg), (None, None), "{role:?} on {ground:?}");
            }
            let look = |role, ground| theme.style(role, Modifier::NONE, ground).add_modifier;
            let plain = look(Role::Text, Background::Plain);
            for role in [
                Role::Strong,
                Role::Dim,
                Role::Link,
                Role::Error,
                Role::User,
                Role::ModeDebug,
            ] {
                assert_ne!(look(role, Background::Plain), plain, "{name}: {role:?}");
            }
            assert_ne!(
                look(Role::Strong, Background::Plain),
                look(Role::Dim, Background::Plain)
            );
            assert_ne!(
                look(Role::Strong, Background::Plain),
                look(Role::Link, Background::Plain)
            );
            for (_, role) in ROLES {
                assert_ne!(
                    look(role, Background::Selection),
                    look(role, Background::Plain),
                    "{name}: {role:?} selected"
                );
                assert_ne!(
                    look(role, Background::AddedWord),
                    look(role, Background::Added),
                    "{name}: {role:?}, a word"
                );
                assert_ne!(
                    look(role, Background::RemovedWord),
                    look(role, Background::Removed),
                    "{name}: {role:?}, a word"
                );
            }
        }
    }

    #[test]
    fn marks_join_the_roles_own_and_reverse_stands_out_on_the_reversed() {
        let theme = Theme::built_in("terminal").expect("built in");
        let look = |role, mark, ground| theme.style(role, mark, ground).add_modifier;
        assert_eq!(
            look(Role::Text, Modifier::NONE, Background::Plain),
            style::Modifier::empty()
        );
        let all = Modifier::BOLD
            | Modifier::ITALIC
            | Modifier::UNDERLINE
            | Modifier::STRIKE
            | Modifier::REVERSE
            | Modifier::FAINT;
        let modifiers = style::Modifier::BOLD
            | style::Modifier::ITALIC
            | style::Modifier::UNDERLINED
            | style::Modifier::CROSSED_OUT
            | style::Modifier::REVERSED
            | style::Modifier::DIM;
        assert_eq!(look(Role::Text, all, Background::Plain), modifiers);
        assert_eq!(
            look(Role::Link, Modifier::BOLD, Background::Plain),
            style::Modifier::BOLD | style::Modifier::UNDERLINED
        );
        assert_eq!(
            look(Role::Text, Modifier::NONE, Background::Selection),
            style::Modifier::REVERSED
        );
        assert_eq!(
            look(Role::Text, Modifier::REVERSE, Background::Selection),
            style::Modifier::empty()
        );
    }

    #[test]
    fn the_sixteen_that_a_command_printed_are_the_terminals_business() {
        for (name, _) in BUILT_IN {
            for depth in [Depth::True, Depth::Indexed, Depth::Sixteen] {
                let theme = Theme::built_in(name)
                    .expect("built in")
                    .with_depth(depth)
                    .adapted(Rgb::WHITE);
                for index in 0..16 {
                    let style = theme.style(Role::Indexed(index), Modifier::NONE, Background::Plain);
                    assert_eq!((style.fg, style.bg), (Some(Color::Indexed(index)), None), "{name}");
                    let style = theme.style(Role::Text, Modifier::NONE, Background::Indexed(index));
                    assert_eq!(style.bg, Some(Color::Indexed(index)), "{name}");
                    assert_eq!(
                        style.fg,
                        Some(Color::Reset),
                        "{name}: text on an unknown ground is the terminal's"
                    );
                }
            }
        }
    }

    #[test]
    fn the_two_halves_of_the_role_table_agree() {
        for (index, (name, role)) in ROLES.into_iter().enumerate() {
            assert_eq!(role_index(role), Some(index), "{name}");
        }
        for (index, (name, ground)) in GROUNDS.into_iter().enumerate() {
            assert_eq!(ground_index(ground), Some(index), "{name}");
        }
    }

    fn any_depth() -> impl Strategy<Value = Depth> {
        prop::sample::select(vec![Depth::None, Depth::Sixteen, Depth::Indexed, Depth::True])
    }

    fn any_background() -> impl Strategy<Value = Rgb> {
        any::<(u8, u8, u8)>().prop_map(|(red, green, blue)| Rgb(red, green, blue))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_background_at_all_is_legible(background in any_background(), name in prop::sample::select(drawn().into_iter().map(|it| it.0).collect::<Vec<_>>())) {
            let theme = Theme::built_in(name).expect("built in").adapted(background);
            prop_assert_eq!(illegible(&theme, background), Vec::<String>::new());
            let theme = theme.with_depth(Depth::Indexed);
            prop_assert_eq!(illegible(&theme, background), Vec::<String>::new());
        }

        #[test]
        fn what_a_command_printed_is_legible(
            background in any_background(),
            front in any::<(u8, u8, u8)>(),
            back in prop::option::of(any::<(u8, u8, u8)>()),
            index in prop::option::of(16..=255_u8),
        ) {
            let theme = Theme::default().adapted(background);
            let role = index.map_or(Role::Rgb(front.0, front.1, front.2), Role::Indexed);
            let ground = back.map_or(Background::Plain, |(red, green, blue)| Background::Rgb(red, green, blue));
            let behind = back.map_or(background, |(red, green, blue)| Rgb(red, green, blue));
            for role in [role, Role::Text, Role::Faint] {
                let style = theme.style(role, Modifier::NONE, ground);
                let needed = contrast_needed(role, ground);
                prop_assert!(rgb(style.fg).expect("a colour").contrast(behind) >= needed, "{:?}", role);
            }
        }

        #[test]
        fn a_style_is_found_for_everything(depth in any_depth(), name in prop::sample::select(BUILT_IN.iter().map(|it| it.0).collect::<Vec<_>>()), index in any::<u8>(), colour in any::<(u8, u8, u8)>()) {
            let theme = Theme::built_in(name).expect("built in").with_depth(depth);
            let roles = ROLES.into_iter().map(|it| it.1).chain([Role::Indexed(index), Role::Rgb(colour.0, colour.1, colour.2)]);
            for role in roles {
                for ground in ALL_GROUNDS.into_iter().chain([Background::Indexed(index), Background::Rgb(colour.0, colour.1, colour.2)]) {
                    let style = theme.style(role, Modifier::NONE, ground);
                    if depth == Depth::Sixteen {
                        for colour in [style.fg, style.bg].into_iter().flatten() {
                            prop_assert!(matches!(colour, Color::Reset | Color::Indexed(0..=15)), "{:?}", colour);
                        }
                    }
                    if depth == Depth::Indexed {
                        prop_assert!(!matches!(style.fg, Some(Color::Rgb(..))));
                        prop_assert!(!matches!(style.bg, Some(Color::Rgb(..))));
                    }
                }
            }
        }
    }
}
