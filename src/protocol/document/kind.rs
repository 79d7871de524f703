//! The columns of [`KINDS`](super::KINDS): all that the program knows of a kind of document besides its typed view and its widget.

use serde_json::{Map, Value};

use crate::{protocol::DocumentId, text::Role};

/// A kind of document. Each kind's file holds its row.
pub struct KindRow {
    /// Names that a search query accepts beside the one on the wire.
    pub aliases: &'static [&'static str],
    /// Known members of the metadata. `incomplete`, which every kind may have, is not listed.
    pub members: &'static [Member],
    pub content: ContentRule,
    pub group: KindGroup,
    /// Id of the interface text that names the kind.
    pub label: &'static str,
    /// Id of the interface text at the start of the document's heading, if it says no more than the label does.
    pub heading: Option<&'static str>,
    /// Sign of one column before an ended document in the outline, and its role.
    pub sign: (&'static str, Role),
    /// True if the document takes one line until it is unfolded.
    pub is_line: bool,
    /// Resolves aliases and odd forms of members. Applied to every set of members that arrives; applying it twice changes
    /// nothing.
    pub normalise: fn(&mut Map<String, Value>),
    /// Writes down the defaults of absent members when the document ends.
    pub fill: fn(&mut Map<String, Value>, &DocumentId),
}

impl KindRow {
    /// A row for a kind of prose without members; each kind overrides what differs.
    pub(super) const DEFAULT: Self = Self {
        aliases: &[],
        members: &[],
        content: ContentRule::Optional,
        group: KindGroup::Text,
        label: "",
        heading: None,
        sign: ("○", Role::Dim),
        is_line: false,
        normalise: |_| {},
        fill: |_, _| {},
    };
}

/// Content that documents of a kind have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentRule {
    /// Never empty.
    NotEmpty,
    /// Always there, possibly empty.
    Required,
    /// An absent content counts as empty.
    Optional,
    /// Absent and empty content differ.
    Nullable,
    /// No content at all.
    Absent,
}

/// Groups of kinds that are printed, served and exported alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindGroup {
    /// Part of the answer's text; may be shown while it streams.
    Text,
    /// Part of the answer's text as soon as the document has ended.
    Page,
    /// Something that the agent did; a line where only text is shown.
    Action,
    /// A failure; kept apart from the answer's text.
    Failure,
    /// A kind that this program does not know.
    Unknown,
}

/// Name, form and need of a member, and a description for the documentation and the JSON Schemas.
pub type Member = (&'static str, MemberForm, Need, &'static str);

/// An object that is the value of a member, or the data of an event. Objects may have further members.
#[derive(Debug, PartialEq, Eq)]
pub struct Shape {
    /// Name of its JSON Schema.
    pub name: &'static str,
    pub about: &'static str,
    pub members: &'static [Member],
}

/// Form of a member's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberForm {
    Text,
    /// A text; readers print any other value as JSON.
    Details,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number of at least this.
    Count(u64),
    /// A whole number, or null if there is none.
    Code,
    Flag,
    /// An object whose members, of any names, have this form.
    Record(&'static MemberForm),
    Object(&'static Shape),
    /// An object of this shape, or null.
    Nullable(&'static Shape),
    /// An object of this shape, as strict writers send it; readers take any value.
    Loose(&'static Shape),
    /// A list of values of this form.
    List(&'static MemberForm),
    Any,
}

/// Need for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// No reader can do without it.
    Always,
    /// Like `Always`, but a proxy cannot know a place that its source does not name.
    Placed,
    /// Readers have a default; the concept has no such member.
    Structure,
    /// Readers have a default, but every writer names it.
    Expected,
    /// Expected, but a proxy cannot know a time that its source did not measure.
    Timed,
    /// May be left out.
    Free,
}

/// Generates [`Kind`](super::Kind), [`View`](super::View), [`KINDS`](super::KINDS) and all that dispatches on them from the list of kinds:
/// `module: Type = "name on the wire"`.
macro_rules! kinds {
    ($d:tt $($module:ident: $kind:ident = $name:literal,)*) => {
        words! {
            /// The type of a document.
            Kind { $($kind = $name,)* }
        }

        /// The row of each known kind, in the protocol's order.
        pub static KINDS: &[(Kind, &KindRow)] = &[$((Kind::$kind, &$module::ROW),)*];

        /// A typed view of a document, with every default filled in.
        #[derive(Clone, Debug, PartialEq)]
        pub enum View<'a> {
            $($kind($kind<'a>),)*
            Unknown(Unknown<'a>),
        }

        impl Kind {
            /// All that is known of the kind by name.
            pub const fn row(&self) -> &'static KindRow {
                match self {
                    $(Self::$kind => &$module::ROW,)*
                    Self::Other(_) => &unknown::ROW,
                }
            }
        }

        impl Document {
            /// The typed view, which borrows the document's text.
            pub fn view(&self) -> View<'_> {
                #[cfg(test)]
                crate::protocol::document::VIEWS.set(crate::protocol::document::VIEWS.get() + 1);
                match &self.kind {
                    $(Kind::$kind => View::$kind($kind::read(self)),)*
                    Kind::Other(_) => View::Unknown(Unknown::read(self)),
                }
            }
        }

        /// Evaluates an expression with the typed view of a document, whatever its kind: `with_view!(document, it => …)`.
        macro_rules! with_view {
            ($d document:expr, $d view:pat => $d then:expr) => {
                match $d document.view() {
                    $($d crate::protocol::View::$kind($d view) => $d then,)*
                    $d crate::protocol::View::Unknown($d view) => $d then,
                }
            };
        }
        pub(crate) use with_view;
    };
}
pub(super) use kinds;
