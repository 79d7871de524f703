//! Objects of the endpoints for stored conversations.

use super::{
    Any, Count, Flag, List, Object, Record, Text, Word, {Always, Free, Placed},
};
use crate::protocol::{
    Operation,
    document::{MemberForm, Shape},
};

const STATUS: MemberForm = Word(&["idle", "streaming", "awaiting_input"]);
const OPERATION: MemberForm = Word(Operation::KNOWN);

/// Objects of stored conversations.
pub static CONVERSATIONS: &[&Shape] = &[
    &CONVERSATION_PAGE,
    &CONVERSATION,
    &CONVERSATION_DIFF,
    &CONVERSATION_RECORD,
    &UNDO_REQUEST,
    &UNDO_OUTCOME,
];

static CONVERSATION_PAGE: Shape = Shape {
    name: "ConversationPage",
    about: "A page of the list of stored conversations, the last changed one first.",
    members: &[
        (
            "conversations",
            List(&Object(&LISTED_CONVERSATION)),
            Always,
            "the conversations",
        ),
        ("next", Text, Free, "`after` of the next page; absent on the last one"),
    ],
};

static LISTED_CONVERSATION: Shape = Shape {
    name: "ListedConversation",
    about: "A stored conversation in a list.",
    members: &[
        ("id", Text, Always, "id of the conversation"),
        ("title", Text, Placed, "its title, or its first words"),
        ("created", Count(0), Always, "milliseconds since 1970; 0 if unknown"),
        ("changed", Count(0), Always, "time of the last change, likewise"),
        ("turns", Count(0), Always, "number of turns"),
        (
            "status",
            STATUS,
            Always,
            "`awaiting_input` if the running answer asks something",
        ),
        ("responseId", Text, Free, "id of the running response"),
    ],
};

static CONVERSATION: Shape = Shape {
    name: "Conversation",
    about: "A stored conversation with a page of its turns.",
    members: &[
        ("id", Text, Always, "id of the conversation"),
        ("title", Text, Placed, "its title"),
        ("created", Count(0), Always, "milliseconds since 1970; 0 if unknown"),
        ("status", STATUS, Always, "as in the list"),
        ("responseId", Text, Free, "id of the running response"),
        (
            "lastEventId",
            Count(0),
            Always,
            "`Last-Event-ID` with which the stream of the conversation continues here",
        ),
        (
            "turns",
            List(&Object(&CONVERSATION_TURN)),
            Always,
            "turns of the current branch",
        ),
        (
            "next",
            Count(1),
            Free,
            "`after` of the next page; absent on the last one",
        ),
    ],
};

static CONVERSATION_TURN: Shape = Shape {
    name: "ConversationTurn",
    about: "A message and its response.",
    members: &[
        ("turn", Count(0), Always, "number of the turn"),
        ("at", Count(0), Always, "its time in milliseconds since 1970"),
        ("message", Record(&Any), Free, "the message, as it was sent"),
        (
            "response",
            Record(&Any),
            Always,
            "the response object as far as it exists; its `id` is the producer's",
        ),
        (
            "thinking",
            List(&Any),
            Free,
            "what the model thought, each before a document",
        ),
    ],
};

static CONVERSATION_DIFF: Shape = Shape {
    name: "ConversationDiff",
    about: "The changes of files in a conversation.",
    members: &[(
        "edits",
        List(&Object(&CONVERSATION_EDIT)),
        Always,
        "the changes in their order",
    )],
};

static CONVERSATION_EDIT: Shape = Shape {
    name: "ConversationEdit",
    about: "A change of a file that was made.",
    members: &[
        ("address", Text, Always, "turn and number of the document: `7.3`"),
        ("turn", Count(0), Always, "number of the turn"),
        ("documentId", Text, Always, "id of the document in its turn"),
        ("filePath", Text, Always, "the file"),
        ("operation", OPERATION, Always, "kind of change"),
        ("undone", Flag, Always, "true if it was undone"),
        ("patch", Text, Always, "a unified diff; `\"\"` if there is none"),
    ],
};

static CONVERSATION_RECORD: Shape = Shape {
    name: "ConversationRecord",
    about: "Data of the event `record`: an event of a conversation, of whichever turn.",
    members: &[
        ("conversationId", Text, Always, "id of the conversation"),
        (
            "n",
            Count(1),
            Always,
            "number of the record in the conversation; numbers may be missing",
        ),
        ("turn", Count(0), Always, "number of the turn"),
        ("at", Count(0), Always, "its time in milliseconds since 1970"),
        ("event", Text, Always, "name of the event"),
        (
            "data",
            Record(&Any),
            Always,
            "its data, as `--output-format events` prints it",
        ),
    ],
};

static UNDO_REQUEST: Shape = Shape {
    name: "UndoRequest",
    about: "Body of `POST /api/v1/conversations/{id}/undo`.",
    members: &[
        (
            "turn",
            Count(1),
            Free,
            "all of a turn; absent: the last turn that changed files",
        ),
        ("documentId", Text, Free, "only this document of the turn"),
        ("redo", Flag, Free, "redo the last undo, or the document"),
        ("overwrite", Flag, Free, "files that were changed later, too"),
        ("except", List(&Text), Free, "paths that stay as they are"),
        ("dryRun", Flag, Free, "change nothing"),
    ],
};

static UNDO_OUTCOME: Shape = Shape {
    name: "UndoOutcome",
    about: "The result of an undo, or what it would be.",
    members: &[
        ("done", Flag, Always, "false for a dry run"),
        ("files", List(&Object(&UNDONE_FILE)), Always, "files that change"),
        (
            "isPartial",
            Flag,
            Always,
            "true if the oldest changes are no longer stored",
        ),
        ("message", Text, Always, "the result in words; `\"\"` for a dry run"),
    ],
};

static UNDONE_FILE: Shape = Shape {
    name: "UndoneFile",
    about: "The effect of an undo on a file.",
    members: &[
        ("path", Text, Always, "the file, relative to the workspace"),
        ("operation", OPERATION, Always, "kind of change"),
        ("added", Count(0), Always, "lines added"),
        ("removed", Count(0), Always, "lines removed"),
        ("patch", Text, Always, "the change as a unified diff"),
        (
            "conflict",
            Word(&["user", "agent"]),
            Free,
            "who changed the file later; without `overwrite` it stays as it is",
        ),
        (
            "conflictTurn",
            Count(1),
            Free,
            "turn of that change, if it was the agent's",
        ),
        ("lost", Flag, Always, "true if it cannot be brought back"),
    ],
};
