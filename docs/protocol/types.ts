// Types of the documents protocol, for readers. Objects may have further members, words may be others.
// Generated from schema.json by `SHEAF_UPDATE_DOCS=1 cargo test --test it protocol`; do not edit.

/** Metadata of a `text`. */
export interface TextMetadata {
  /** `markdown` may contain fences and links; `plain` is shown as it is */
  format: "markdown" | "plain" | (string & {});
  /** `user`: words of the user, sent while the answer was made */
  role?: "user" | (string & {});
  /** true if the document was cut off before its end */
  incomplete?: boolean;
  /** true if text was cut because it was too large */
  truncated?: boolean;
  /** true if the effect of the document was undone; `partly` if some of it was */
  undone?: unknown;
  /** git commit that contains the change */
  committed?: string;
  /** true if the document is only for the user; no model receives it */
  aside?: boolean;
}

/** A document of type `text`. */
export interface TextDocument {
  id: string;
  type: "text";
  sequence: number;
  content: string;
  metadata: TextMetadata;
}

/** Metadata of a `code_reference`. */
export interface CodeReferenceMetadata {
  /** path from the workspace root, with `/` */
  filePath: string;
  /** first line, counted from 1 */
  startLine: number;
  /** last line, included; not before `startLine` */
  endLine: number;
  /** fence tag; readers derive it from the path, and `""` is plain text */
  language: string;
  /** true if the document was cut off before its end */
  incomplete?: boolean;
  /** true if text was cut because it was too large */
  truncated?: boolean;
  /** true if the effect of the document was undone; `partly` if some of it was */
  undone?: unknown;
  /** git commit that contains the change */
  committed?: string;
  /** true if the document is only for the user; no model receives it */
  aside?: boolean;
}

/** A document of type `code_reference`. */
export interface CodeReferenceDocument {
  id: string;
  type: "code_reference";
  sequence: number;
  content: string;
  metadata: CodeReferenceMetadata;
}

/** Metadata of a `code_block`. */
export interface CodeBlockMetadata {
  /** fence tag; `""` is plain text */
  language: string;
  /** sheaf writes `example` in ask mode, `suggestion` in plan mode, otherwise `new_code` */
  purpose: "new_code" | "example" | "suggestion" | (string & {});
  /** whole first line of the fence, if it says more than the language */
  info?: string;
  /** true if the document was cut off before its end */
  incomplete?: boolean;
  /** true if text was cut because it was too large */
  truncated?: boolean;
  /** true if the effect of the document was undone; `partly` if some of it was */
  undone?: unknown;
  /** git commit that contains the change */
  committed?: string;
  /** true if the document is only for the user; no model receives it */
  aside?: boolean;
}

/** A document of type `code_block`. */
export interface CodeBlockDocument {
  id: string;
  type: "code_block";
  sequence: number;
  content: string;
  metadata: CodeBlockMetadata;
}

/** One replacement in a file. */
export interface Diff {
  /** exact text before, without line numbers; `""` for an insertion */
  oldString: string;
  /** exact text after */
  newString: string;
  /** first line of `oldString` before the edit, counted from 1; of an insertion the line that it is put before */
  startLine?: number;
  /** last line of `oldString`, included; of an insertion `startLine` − 1 */
  endLine?: number;
  /** unchanged whole lines before it, when it was made; `""` at the start of the file */
  contextBefore?: string;
  /** unchanged whole lines after it; `""` at the end of the file */
  contextAfter?: string;
}

/** Place of an edit among those of its call and file. */
export interface Hunk {
  /** number of this edit, counted from 1 */
  index?: number;
  /** number of edits */
  count?: number;
}

/** A cell of a notebook. */
export interface Cell {
  /** position of the cell, counted from 0 */
  index?: number;
  /** true if the edit adds the cell */
  isNew?: boolean;
}

/** Why an action failed. */
export interface ActionFailure {
  /** UPPER_SNAKE, from the list in §11 */
  errorCode?: string;
  /** the reason in words */
  message?: string;
  /** a hint */
  details?: string;
}

/** A hook that ran for a call. */
export interface HookRun {
  /** file and event of the hook */
  hook: string;
  /** its command line */
  command: string;
  /** its exit code; null if it did not exit by itself */
  exitCode?: number | null;
  /** duration in milliseconds */
  duration_ms?: number;
  /** what it changed, or why it failed; absent if it changed nothing */
  effect?: string;
  /** its message, or its reason */
  message?: string;
}

/** What checkers and language servers reported of a change. */
export interface ChangeCheck {
  /** true until the changes of the step have been looked at; where the answer has ended, they were not */
  isPending?: boolean;
  /** true if something has looked at the change */
  isChecked: boolean;
  /** number of problems that were not there before */
  newProblems: number;
  /** number of problems that are gone */
  fixedProblems: number;
  /** number of problems that earlier changes of the answer have brought and that are left */
  openProblems?: number;
  /** the new problems, at most 20 */
  problems: Array<Problem>;
  /** problems that may be older than the change, at most 20 */
  olderProblems?: Array<Problem>;
  /** number of all problems that may be older */
  olderCount?: number;
  /** why files were not looked at */
  unchecked: Array<string>;
}

/** A problem that a checker or a language server reports. */
export interface Problem {
  /** file, relative to the workspace */
  filePath: string;
  /** line, from 1 */
  line: number;
  /** column in characters, from 1 */
  column: number;
  /** `error` or `warning` */
  severity: string;
  /** what is wrong */
  message: string;
  /** program that reports it */
  source: string;
  /** its code of the problem */
  code?: string;
}

/** Metadata of a `file_edit`. */
export interface FileEditMetadata {
  /** path from the workspace root, with `/`; of a `rename` the old path */
  filePath: string;
  /** readers take an edit without one for `edit` if it has a `diff`, otherwise for `create` */
  operation: "create" | "edit" | "delete" | "rename" | (string & {});
  /** fence tag; readers derive it from the path */
  language: string;
  /** the one replacement of an `edit`; null for other operations and for an edit that never came about */
  diff?: Diff | null;
  /** target of a `rename` */
  newFilePath?: string;
  /** call that made the edit; all edits of a call have the same */
  toolCallId?: string;
  /** tool that made the edit */
  toolName?: string;
  /** state of the edit; absent means `applied` */
  applied?: "pending" | "applied" | "rejected" | "failed" | (string & {});
  /** place of this edit among those of its call and file */
  hunk?: Hunk;
  /** cell of a notebook; the lines of the diff are counted in it */
  cell?: Cell;
  /** why it failed, as the `error` document after it says */
  failure?: ActionFailure;
  /** reason for a rejected edit */
  reason?: string;
  /** hooks that ran for the call */
  hooks?: Array<HookRun>;
  /** what checkers and language servers reported of the change of the call, on its last document; the last document of a step also has what they reported of other files */
  checked?: ChangeCheck;
  /** true if the user changed the proposed text before accepting it */
  edited?: boolean;
  /** true if the user accepted this hunk by itself */
  accepted?: boolean;
  /** the user's comment on the hunk, for the model */
  comment?: string;
  /** result of the call, on the last of its edits: `{status, data}` */
  result?: unknown;
  /** true if the document was cut off before its end */
  incomplete?: boolean;
  /** true if text was cut because it was too large */
  truncated?: boolean;
  /** true if the effect of the document was undone; `partly` if some of it was */
  undone?: unknown;
  /** git commit that contains the change */
  committed?: string;
  /** true if the document is only for the user; no model receives it */
  aside?: boolean;
}

/** A document of type `file_edit`. */
export interface FileEditDocument {
  id: string;
  type: "file_edit";
  sequence: number;
  content: string | null;
  metadata: FileEditMetadata;
}

/** Result of a call. */
export interface CallResult {
  /** `error`: the call failed */
  status: "success" | "error" | (string & {});
  /** what the tool gave, or why it failed; null for nothing */
  data: unknown;
}

/** Metadata of a `tool_call`. */
export interface ToolCallMetadata {
  /** name of the tool */
  toolName: string;
  /** id of the call; readers call it `call_` and the id of the document */
  toolCallId: string;
  /** arguments of the call; text that is no JSON object is in `_raw` */
  arguments: Record<string, unknown>;
  /** result of the call; absent while it runs */
  result?: CallResult;
  /** duration in milliseconds; absent while it runs */
  duration_ms?: number;
  /** true if text was cut because it was too large */
  truncated?: boolean;
  /** `rejected`: the call was not made */
  state?: "rejected" | (string & {});
  /** reason for a rejected call */
  reason?: string;
  /** hooks that ran for the call */
  hooks?: Array<HookRun>;
  /** true if the document was cut off before its end */
  incomplete?: boolean;
  /** true if the effect of the document was undone; `partly` if some of it was */
  undone?: unknown;
  /** git commit that contains the change */
  committed?: string;
  /** true if the document is only for the user; no model receives it */
  aside?: boolean;
}

/** A document of type `tool_call`. */
export interface ToolCallDocument {
  id: string;
  type: "tool_call";
  sequence: number;
  content: string | null;
  metadata: ToolCallMetadata;
}

/** Metadata of a `terminal_command`. */
export interface TerminalCommandMetadata {
  /** command line, as the shell reads it */
  command: string;
  /** folder in which it runs */
  workingDirectory?: string;
  /** exit code; null while it runs, in the background, when it was rejected or stopped */
  exitCode?: number | null;
  /** standard output and error as they came, escape sequences included */
  output: string;
  /** standard output alone, the beginning of it, if it was kept apart */
  stdout?: string;
  /** standard error alone, likewise */
  stderr?: string;
  /** duration in milliseconds */
  duration_ms?: number;
  /** permissions beyond the sandbox's default; `[]` for none */
  permissions: Array<"network" | "git_write" | "all" | (string & {})>;
  /** call that runs the command */
  toolCallId?: string;
  /** absent means `completed` if there is an exit code */
  state?: "running" | "completed" | "background" | "timed_out" | "rejected" | "cancelled" | (string & {});
  /** true if text was cut because it was too large */
  truncated?: boolean;
  /** strength of the sandbox around the command */
  sandbox?: "full" | "partial" | "none" | (string & {});
  /** file with all of the output */
  logPath?: string;
  /** why it failed, as the `error` document after it says */
  failure?: ActionFailure;
  /** reason for a rejected command */
  reason?: string;
  /** hooks that ran for the call */
  hooks?: Array<HookRun>;
  /** true if the document was cut off before its end */
  incomplete?: boolean;
  /** true if the effect of the document was undone; `partly` if some of it was */
  undone?: unknown;
  /** git commit that contains the change */
  committed?: string;
  /** true if the document is only for the user; no model receives it */
  aside?: boolean;
}

/** A document of type `terminal_command`. */
export interface TerminalCommandDocument {
  id: string;
  type: "terminal_command";
  sequence: number;
  content: string | null;
  metadata: TerminalCommandMetadata;
}

/** A step of a plan. */
export interface Todo {
  /** slug in kebab-case, unique in the plan */
  id: string;
  /** the step in words */
  content: string;
  /** absent means `pending` */
  status: "pending" | "in_progress" | "completed" | "cancelled" | (string & {});
  /** ids of todos that have to be done before; unknown ids and circles are ignored */
  dependencies: Array<string>;
}

/** Metadata of a `plan`. */
export interface PlanMetadata {
  /** title of the plan */
  title: string;
  /** the plan in a sentence or two; may be `""` */
  overview: string;
  /** steps of the plan; may be empty */
  todos: Array<Todo>;
  /** format of the content */
  format: "markdown" | (string & {});
  /** text that the user put in the place of the document's content */
  content?: string;
  /** true if the user edited the plan */
  edited?: boolean;
  /** call that made the plan */
  toolCallId?: string;
  /** true if the document was cut off before its end */
  incomplete?: boolean;
  /** true if text was cut because it was too large */
  truncated?: boolean;
  /** true if the effect of the document was undone; `partly` if some of it was */
  undone?: unknown;
  /** git commit that contains the change */
  committed?: string;
  /** true if the document is only for the user; no model receives it */
  aside?: boolean;
}

/** A document of type `plan`. */
export interface PlanDocument {
  id: string;
  type: "plan";
  sequence: number;
  content: string;
  metadata: PlanMetadata;
}

/** A question for the user. */
export interface Question {
  /** unique in the document */
  id: string;
  /** the question */
  text: string;
  /** answers to choose from; an empty list asks for free text */
  options: Array<QuestionOption>;
  /** true if several options may be chosen; absent means false */
  allowMultiple?: boolean;
  /** true if the user may write an answer instead; absent means true */
  allowFreeText?: boolean;
}

/** An answer to choose. */
export interface QuestionOption {
  /** unique in the question; of an approval `allow_once`, `allow_session`, `allow_always`, `reject_once` or `reject_always` */
  id: string;
  /** the answer in words */
  label: string;
  /** more about it */
  description?: string;
}

/** An answer to one question. */
export interface Answer {
  /** id of the question */
  questionId: string;
  /** ids of the chosen options; empty if the answer is free text */
  selectedOptionIds: Array<string>;
  /** answer in the user's words; with a rejection the reason */
  freeText?: string;
  /** decisions on the hunks of a change; a hunk without one is not written */
  hunks?: Array<HunkAnswer>;
}

/** The user's decision on one hunk of a change that needs approval. */
export interface HunkAnswer {
  /** number of the hunk, counted from 1 */
  index: number;
  /** true if the hunk is to be written */
  accepted: boolean;
  /** text to write instead of the proposed one */
  newString?: string;
  /** comment for the model */
  comment?: string;
}

/** A planned action: a document without id and sequence. */
export interface Subject {
  /** type of the document that the action would be */
  type: "text" | "code_reference" | "code_block" | "file_edit" | "tool_call" | "terminal_command" | "plan" | "clarification" | "error" | "todo_update" | (string & {});
  /** its content; null if it has none */
  content?: unknown;
  /** its metadata; a `file_edit` may have `hunks`, which can be accepted one by one */
  metadata?: Record<string, unknown>;
}

/** Metadata of a `clarification`. */
export interface ClarificationMetadata {
  /** questions, at least one */
  questions: Array<Question>;
  /** absent means `question`; an `approval` asks whether an action may be carried out */
  kind?: "question" | "approval" | (string & {});
  /** present when the questions were dealt with */
  outcome?: "answered" | "skipped" | "cancelled" | (string & {});
  /** answers that were given */
  answers?: Array<Answer>;
  /** planned action of an approval */
  subject?: Subject;
  /** call that waits for the answer */
  toolCallId?: string;
  /** reason for a missing answer */
  reason?: string;
  /** true if the document was cut off before its end */
  incomplete?: boolean;
  /** true if text was cut because it was too large */
  truncated?: boolean;
  /** true if the effect of the document was undone; `partly` if some of it was */
  undone?: unknown;
  /** git commit that contains the change */
  committed?: string;
  /** true if the document is only for the user; no model receives it */
  aside?: boolean;
}

/** A document of type `clarification`. */
export interface ClarificationDocument {
  id: string;
  type: "clarification";
  sequence: number;
  content: string;
  metadata: ClarificationMetadata;
}

/** Metadata of a `error`. */
export interface ErrorMetadata {
  /** UPPER_SNAKE, from the list in §11 */
  errorCode: string;
  /** who failed: a tool's name, `llm`, `gateway`, `stream` or `client` */
  source: string;
  /** more about it, for the user; may be `""` */
  details: unknown;
  /** true if the document was cut off before its end */
  incomplete?: boolean;
  /** true if text was cut because it was too large */
  truncated?: boolean;
  /** true if the effect of the document was undone; `partly` if some of it was */
  undone?: unknown;
  /** git commit that contains the change */
  committed?: string;
  /** true if the document is only for the user; no model receives it */
  aside?: boolean;
}

/** A document of type `error`. */
export interface ErrorDocument {
  id: string;
  type: "error";
  sequence: number;
  content: string;
  metadata: ErrorMetadata;
}

/** A change of a todo. Absent members keep their value. */
export interface TodoChange {
  /** id of the todo; an unknown id adds one */
  id: string;
  /** new status */
  status?: "pending" | "in_progress" | "completed" | "cancelled" | (string & {});
  /** the todo in words; a new todo without it shows its id */
  content?: string;
  /** ids of todos that have to be done before */
  dependencies?: Array<string>;
}

/** Metadata of a `todo_update`. */
export interface TodoUpdateMetadata {
  /** todos that change */
  todos: Array<TodoChange>;
  /** absent means true; false: the list replaces all todos */
  merge?: boolean;
  /** call that made the update */
  toolCallId?: string;
  /** true if the document was cut off before its end */
  incomplete?: boolean;
  /** true if text was cut because it was too large */
  truncated?: boolean;
  /** true if the effect of the document was undone; `partly` if some of it was */
  undone?: unknown;
  /** git commit that contains the change */
  committed?: string;
  /** true if the document is only for the user; no model receives it */
  aside?: boolean;
}

/** A document of type `todo_update`. */
export interface TodoUpdateDocument {
  id: string;
  type: "todo_update";
  sequence: number;
  content: string | null;
  metadata: TodoUpdateMetadata;
}

/** A document of another type. */
export interface UnknownDocument {
  id: string;
  type: string;
  sequence: number;
  content: string | null;
  metadata: Record<string, unknown>;
}

/** A document of a known type. */
export type KnownDocument = TextDocument | CodeReferenceDocument | CodeBlockDocument | FileEditDocument | ToolCallDocument | TerminalCommandDocument | PlanDocument | ClarificationDocument | ErrorDocument | TodoUpdateDocument;

/** A document. */
export type Document = KnownDocument | UnknownDocument;

/** Body of `POST /api/v1/chat/completions` and `/plan`. */
export interface Request {
  /** name of the model; `default`, or none, leaves the choice to the gateway */
  model?: string;
  /** absent means `agent`; the path `/plan` wins */
  mode?: "agent" | "plan" | "ask" | "debug" | (string & {});
  /** where the client works */
  context?: Context;
  /** the conversation; the last message is the user's */
  messages: Array<Message>;
  /** names of the tools that may be used; absent for all, `[]` for none */
  tools?: Array<string>;
  /** limits by name of tool; a tool must be allowed by both lists */
  availableTools?: Record<string, ToolAccess>;
  /** true for a stream; absent means false */
  stream?: boolean;
  /** id from an earlier response */
  conversationId?: string;
  /** wishes for the stream */
  streamOptions?: StreamOptions;
  /** labels; `customMode` is the client's name for a mode that narrows `mode` */
  metadata?: Record<string, string>;
}

/** The client's description of where it works. */
export interface Context {
  /** absolute path as the gateway sees it */
  workspacePath?: string;
  /** paths from the workspace root; `{path, content, cursorLine}` is read as well */
  openFiles?: Array<unknown>;
  /** indented tree of the files, two spaces per level, folders end in `/` */
  projectLayout?: string;
  /** texts of rules; an object with `content` is read as well */
  rules?: Array<unknown>;
}

/** One message of a conversation. */
export interface Message {
  /** who says it */
  role: "user" | "assistant" | "system" | (string & {});
  /** the message; of an earlier answer its text, which must be enough by itself */
  content: string;
  /** documents of an earlier answer, unchanged */
  documents?: Array<Document>;
  /** answer to a question of the last response */
  clarificationResponse?: ClarificationResponse;
}

/** The user's answer to a clarification or an approval. */
export interface ClarificationResponse {
  /** id of the question's document */
  documentId: string;
  /** `skipped`: the user does not answer; `cancelled`: the turn was stopped */
  outcome: "answered" | "skipped" | "cancelled" | (string & {});
  /** answers, one for each question */
  answers?: Array<Answer>;
  /** reason for a missing answer */
  reason?: string;
}

/** Limits of one tool. */
export interface ToolAccess {
  /** false turns the tool off */
  enabled?: boolean;
  /** `workspace` */
  scope?: string;
  /** folders that it may touch */
  allowedPaths?: Array<string>;
  /** true if the user must allow each use */
  requireApproval?: boolean;
}

/** Wishes for the stream. */
export interface StreamOptions {
  /** `named` is dialect A, `data` is dialect B */
  dialect?: "named" | "data" | (string & {});
  /** false if the client cannot answer questions while the stream runs */
  liveInput?: boolean;
}

/** A response as one object. */
export interface Response {
  /** `chat_` and a unique part */
  id: string;
  /** `conv_` and a unique part */
  conversationId?: string;
  /** model that answered; `unknown` if nobody named one */
  model: string;
  /** mode of the answer */
  mode: "agent" | "plan" | "ask" | "debug" | (string & {});
  /** time in ISO 8601, UTC, with `Z` */
  created: string;
  /** `streaming` while it runs, then `completed` or `error` */
  status: "completed" | "streaming" | "error" | (string & {});
  /** documents in the order of their `sequence` */
  documents: Array<Document>;
  /** tokens of all requests to the model */
  usage: Usage;
  /** facts about the response */
  metadata: ResponseMetadata;
}

/** Tokens of all requests to the model; 0 if unknown. */
export interface Usage {
  /** tokens of the requests */
  promptTokens: number;
  /** tokens of the answers */
  completionTokens: number;
  /** their sum */
  totalTokens: number;
}

/** Facts about a response. */
export interface ResponseMetadata {
  /** duration in milliseconds */
  duration_ms?: number;
  /** number of `tool_call` documents */
  toolCallCount: number;
  /** number of requests to the model */
  turnCount: number;
  /** why it ended; absent while it streams */
  finishReason?: "stop" | "awaiting_input" | "cancelled" | "max_turns" | "length" | "refusal" | "error" | "interrupted" | (string & {});
}

/** Body of an answer with a status of 400 or more. */
export interface ErrorBody {
  /** reason for the refusal */
  error: Failure;
}

/** Reason for a refusal. */
export interface Failure {
  /** UPPER_SNAKE, from the list in §11 */
  code: string;
  /** the reason in words */
  message: string;
  /** who refused: `gateway`, `llm` or a tool's name */
  source: string;
  /** a hint; may be `""` */
  details: string;
}

/** A page of the list of stored conversations, the last changed one first. */
export interface ConversationPage {
  /** the conversations */
  conversations: Array<ListedConversation>;
  /** `after` of the next page; absent on the last one */
  next?: string;
}

/** A stored conversation in a list. */
export interface ListedConversation {
  /** id of the conversation */
  id: string;
  /** its title, or its first words */
  title?: string;
  /** milliseconds since 1970; 0 if unknown */
  created: number;
  /** time of the last change, likewise */
  changed: number;
  /** number of turns */
  turns: number;
  /** `awaiting_input` if the running answer asks something */
  status: "idle" | "streaming" | "awaiting_input" | (string & {});
  /** id of the running response */
  responseId?: string;
}

/** A stored conversation with a page of its turns. */
export interface Conversation {
  /** id of the conversation */
  id: string;
  /** its title */
  title?: string;
  /** milliseconds since 1970; 0 if unknown */
  created: number;
  /** as in the list */
  status: "idle" | "streaming" | "awaiting_input" | (string & {});
  /** id of the running response */
  responseId?: string;
  /** `Last-Event-ID` with which the stream of the conversation continues here */
  lastEventId: number;
  /** turns of the current branch */
  turns: Array<ConversationTurn>;
  /** `after` of the next page; absent on the last one */
  next?: number;
}

/** A message and its response. */
export interface ConversationTurn {
  /** number of the turn */
  turn: number;
  /** its time in milliseconds since 1970 */
  at: number;
  /** the message, as it was sent */
  message?: Record<string, unknown>;
  /** the response object as far as it exists; its `id` is the producer's */
  response: Record<string, unknown>;
  /** what the model thought, each before a document */
  thinking?: Array<unknown>;
}

/** The changes of files in a conversation. */
export interface ConversationDiff {
  /** the changes in their order */
  edits: Array<ConversationEdit>;
}

/** A change of a file that was made. */
export interface ConversationEdit {
  /** turn and number of the document: `7.3` */
  address: string;
  /** number of the turn */
  turn: number;
  /** id of the document in its turn */
  documentId: string;
  /** the file */
  filePath: string;
  /** kind of change */
  operation: "create" | "edit" | "delete" | "rename" | (string & {});
  /** true if it was undone */
  undone: boolean;
  /** a unified diff; `""` if there is none */
  patch: string;
}

/** Data of the event `record`: an event of a conversation, of whichever turn. */
export interface ConversationRecord {
  /** id of the conversation */
  conversationId: string;
  /** number of the record in the conversation; numbers may be missing */
  n: number;
  /** number of the turn */
  turn: number;
  /** its time in milliseconds since 1970 */
  at: number;
  /** name of the event */
  event: string;
  /** its data, as `--output-format events` prints it */
  data: Record<string, unknown>;
}

/** Body of `POST /api/v1/conversations/{id}/undo`. */
export interface UndoRequest {
  /** all of a turn; absent: the last turn that changed files */
  turn?: number;
  /** only this document of the turn */
  documentId?: string;
  /** redo the last undo, or the document */
  redo?: boolean;
  /** files that were changed later, too */
  overwrite?: boolean;
  /** paths that stay as they are */
  except?: Array<string>;
  /** change nothing */
  dryRun?: boolean;
}

/** The result of an undo, or what it would be. */
export interface UndoOutcome {
  /** false for a dry run */
  done: boolean;
  /** files that change */
  files: Array<UndoneFile>;
  /** true if the oldest changes are no longer stored */
  isPartial: boolean;
  /** the result in words; `""` for a dry run */
  message: string;
}

/** The effect of an undo on a file. */
export interface UndoneFile {
  /** the file, relative to the workspace */
  path: string;
  /** kind of change */
  operation: "create" | "edit" | "delete" | "rename" | (string & {});
  /** lines added */
  added: number;
  /** lines removed */
  removed: number;
  /** the change as a unified diff */
  patch: string;
  /** who changed the file later; without `overwrite` it stays as it is */
  conflict?: "user" | "agent" | (string & {});
  /** turn of that change, if it was the agent's */
  conflictTurn?: number;
  /** true if it cannot be brought back */
  lost: boolean;
}

/** Begins a response: first, and once. */
export interface ResponseStart {
  /** id of the response, `chat_…` */
  id: string;
  /** id of the conversation, `conv_…` */
  conversationId?: string;
  /** model that answers */
  model: string;
  /** mode of the answer */
  mode: "agent" | "plan" | "ask" | "debug" | (string & {});
  /** time in ISO 8601, UTC, with `Z` */
  created: string;
  /** `streaming` */
  status: "streaming" | (string & {});
  /** what a client may do: §9 */
  capabilities?: Array<"cancel" | "live_input" | "stateful" | (string & {})>;
}

/** Opens a document. */
export interface DocumentStart {
  /** unique in the response */
  id: string;
  /** type of the document */
  type: "text" | "code_reference" | "code_block" | "file_edit" | "tool_call" | "terminal_command" | "plan" | "clarification" | "error" | "todo_update" | (string & {});
  /** number of the document in the response, counted from 1 */
  sequence: number;
  /** members of the type that are known by now */
  metadata: Record<string, unknown>;
}

/** Adds text to the content. */
export interface ContentDelta {
  /** id of the document */
  documentId: string;
  /** text to append */
  delta: string;
}

/** Names the tool of a `tool_call`. */
export interface ToolCallStart {
  /** id of the document */
  documentId: string;
  /** name of the tool */
  toolName: string;
  /** id of the call */
  toolCallId?: string;
}

/** Gives the arguments of a `tool_call`, once and whole. */
export interface ToolCallArguments {
  /** id of the document */
  documentId: string;
  /** arguments of the call */
  arguments: Record<string, unknown>;
}

/** Gives the result of a `tool_call`. */
export interface ToolResult {
  /** id of the document */
  documentId: string;
  /** result of the call: of a `tool_call` a `CallResult` */
  result: unknown;
  /** duration in milliseconds */
  duration_ms?: number;
}

/** Changes the metadata of an open document. */
export interface MetadataDelta {
  /** id of the document */
  documentId: string;
  /** merge patch (RFC 7396) */
  metadata?: Record<string, unknown>;
  /** text to append to members, by their names */
  append?: Record<string, string>;
}

/** Adds to the model's reasoning, which is no document. */
export interface ThinkingDelta {
  /** text to append */
  delta: string;
}

/** Ends a document. */
export interface DocumentEnd {
  /** id of the document */
  documentId: string;
  /** whole content; replaces what the deltas added up to */
  finalContent?: string;
  /** whole metadata: each member replaces the one before, null removes it */
  metadata: Record<string, unknown>;
}

/** Changes the metadata of a document that has ended. */
export interface DocumentUpdate {
  /** id of the document */
  documentId: string;
  /** merge patch (RFC 7396) */
  metadata: Record<string, unknown>;
}

/** Ends a response, after every document. */
export interface Done {
  /** tokens of all requests to the model */
  usage: Usage;
  /** id of the response */
  id?: string;
  /** id of the conversation */
  conversationId?: string;
  /** model that answered */
  model?: string;
  /** mode of the answer */
  mode?: "agent" | "plan" | "ask" | "debug" | (string & {});
  /** time in ISO 8601, UTC, with `Z` */
  created?: string;
  /** `completed` or `error` */
  status: "completed" | "streaming" | "error" | (string & {});
  /** facts about the response */
  metadata: ResponseMetadata;
}

/** The user's message. */
export interface UserMessage {
  /** the message */
  message: Message;
}

/** A title for the conversation. */
export interface Title {
  /** the title */
  title: string;
  /** true if the user chose it */
  byUser?: boolean;
}

/** A repair of a stream, or an action of the user. */
export interface Notice {
  /** weight of the notice */
  severity: "info" | "warning" | "error" | (string & {});
  /** short name in kebab-case */
  code: string;
  /** the notice in words */
  message: string;
  /** id of the document */
  document?: string;
}

/** The conversation goes on after an older turn. */
export interface Branch {
  /** turn after which it goes on; 0 for the beginning */
  after: number;
  /** last document of that turn that belongs to the branch */
  upto?: string;
  /** true if that document is a question to answer anew */
  open?: boolean;
}

/** An event of dialect A: the `event:` line and the data. */
export type NamedEvent = {
  event: "response_start";
  data: ResponseStart;
} | {
  event: "document_start";
  data: DocumentStart;
} | {
  event: "content_delta";
  data: ContentDelta;
} | {
  event: "tool_call_start";
  data: ToolCallStart;
} | {
  event: "tool_call_arguments";
  data: ToolCallArguments;
} | {
  event: "tool_result";
  data: ToolResult;
} | {
  event: "metadata_delta";
  data: MetadataDelta;
} | {
  event: "thinking_delta";
  data: ThinkingDelta;
} | {
  event: "document_end";
  data: DocumentEnd;
} | {
  event: "document_update";
  data: DocumentUpdate;
} | {
  event: "done";
  data: Done;
};

/** The data of an event in dialect B. The last line of a stream is `[DONE]`. */
export type DataEvent = {
  type: "response_start";
  response: ResponseStart;
} | {
  type: "document_start";
  document: DocumentStart;
} | ({
  type: "content_delta";
} & ContentDelta) | ({
  type: "tool_call_start";
} & ToolCallStart) | ({
  type: "tool_call_arguments";
} & ToolCallArguments) | ({
  type: "tool_result";
} & ToolResult) | ({
  type: "metadata_delta";
} & MetadataDelta) | ({
  type: "thinking_delta";
} & ThinkingDelta) | ({
  type: "document_end";
} & DocumentEnd) | ({
  type: "document_update";
} & DocumentUpdate) | ({
  type: "done";
} & Done);
