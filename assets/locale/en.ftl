# English texts of the interface. Every other language falls back to this file.
#
# An id begins with the part of the screen where the text appears. A text has at most 15 words, in sentence case; a label
# has no full stop. Words that are typed or sent (modes, commands, setting keys, filter kinds) are data and not here.

## Rule above the draft

composer-placeholder = Ask anything.  / commands  @ files  ! shell  ? keys
composer-in-review = Keys go to the review.  esc returns here
composer-on-page = Keys go to the page above.  esc returns here
composer-on-list = Keys go to the list above.  esc returns here
composer-on-field = Keys go to the field above.  esc returns here
composer-on-message = Keys go to the commit message.  esc returns here
composer-on-question = Keys go to the question.  tab returns here
composer-on-approval = Keys go to the approval.  tab returns here
composer-on-plan = Keys go to the plan.  tab returns here
composer-on-transcript = Keys go to the transcript.  tab returns here
welcome-other-keys = Also found keys for { $names }. /model switches; to keep one: sheaf config set provider NAME
composer-rest = { $count ->
    [one] 1 more row ↓
   *[other] { $count } more rows ↓
}
composer-rest-above = { $count ->
    [one] 1 more row ↑
   *[other] { $count } more rows ↑
}
composer-unseen = { $count } new ↓
composer-shell = runs in the sandbox
composer-shell-silent = runs in the sandbox, hidden from the model
composer-search = /{ $pattern }  { $place } of { $count }
composer-filter = only { $filter }
composer-unstored = not saved
composer-agent-asks = agent, asks first
composer-next-mode = · next: { $mode }
composer-restricted-mode = { $mode } → read-only
composer-read-only = read-only
composer-queued = { $count } queued
composer-waiting = waiting for you
composer-retry = retrying in { $time }
composer-retrying = { $because } · { $attempt } of { $of }
composer-connecting = connecting to { $peer }
composer-asking-models = asking { $peer } for its models
composer-first-word = waiting for the model
composer-silent = no data for { $time }
phase-thinking = thinking
phase-writing = writing
phase-writing-file = writing { $file }
phase-checking = checking the changes
phase-running = running { $what }
phase-todo = { $place } of { $count } · { $todo }

## Figures and counts
#
# NUMBER groups thousands; `$count` alone selects the plural form.

figure-decimal = .
figure-group = ,
count-lines = { $count ->
    [one] { NUMBER($count) } line
   *[other] { NUMBER($count) } lines
}
count-signs = { $count ->
    [one] { NUMBER($count) } character
   *[other] { NUMBER($count) } characters
}
count-questions = { $count ->
    [one] { NUMBER($count) } question
   *[other] { NUMBER($count) } questions
}
count-changes = { $count ->
    [one] { NUMBER($count) } change
   *[other] { NUMBER($count) } changes
}
count-matches = { $count ->
    [one] { NUMBER($count) } match
   *[other] { NUMBER($count) } matches
}
count-chunks = { $count ->
    [one] { NUMBER($count) } chunk
   *[other] { NUMBER($count) } chunks
}
count-files = { $count ->
    [one] { NUMBER($count) } file
   *[other] { NUMBER($count) } files
}
count-entries = { $count ->
    [one] { NUMBER($count) } entry
   *[other] { NUMBER($count) } entries
}
count-places = { $count ->
    [one] { NUMBER($count) } place
   *[other] { NUMBER($count) } places
}
count-problems = { $count ->
    [one] { NUMBER($count) } problem
   *[other] { NUMBER($count) } problems
}
count-failed-checkers = { $count ->
    [one] { NUMBER($count) } checker failed
   *[other] { NUMBER($count) } checkers failed
}
count-results = { $count ->
    [one] { NUMBER($count) } result
   *[other] { NUMBER($count) } results
}
count-calls = { $count ->
    [one] { NUMBER($count) } call
   *[other] { NUMBER($count) } calls
}
count-items = { $count ->
    [one] { NUMBER($count) } item
   *[other] { NUMBER($count) } items
}
count-members = { $count ->
    [one] { NUMBER($count) } member
   *[other] { NUMBER($count) } members
}

## Plain lines: approval

plain-to-the-letter = exact text:

## Documents

key-send = send
key-back = back
key-confirm = confirm
key-retry = retry
key-tab-build = tab, b, enter
key-tab-retry = tab, r, enter
key-waiting-build = w, b, enter
key-end-retry = G, r, enter
key-mark-build = b, enter
key-mark-edit = e, enter
key-mark-remove = D, enter
key-mark-retry = r, enter
key-review = review
receipt-tests = tests
document-broken-off = incomplete
document-cut = cut
document-hidden = … { $size } more; y copies everything
document-read-only = read-only
document-undone = undone
document-undone-partly = partly undone
document-unknown = unknown kind
value-more = … more

## Thinking, code and citations

thinking-word = thinking
thinking-over = thought
thinking-took = thought for { $time }
code-word = code
code-new = new
code-example = example
code-suggestion = suggestion
citation-no-file = no such file
citation-differs = differs from file

## File changes
#
# The operations are shown in a column six cells wide.

edit-create = create
edit-edit = edit
edit-delete = delete
edit-rename = rename
edit-writing = writing
edit-pending = pending
edit-applied = applied
edit-rejected = rejected
edit-failed = failed
edit-nothing = no changes
edit-checking = checking…
edit-checked = checked
edit-not-checked = not checked
edit-partly-checked = partly checked
edit-unchecked = not checked: { $why }
edit-problems = { $count ->
    [one] 1 new problem
   *[other] { $count } new problems
}
edit-fixed = { $count ->
    [one] 1 problem fixed
   *[other] { $count } problems fixed
}
edit-older = { $count ->
    [one] 1 problem, maybe older
   *[other] { $count } problems, maybe older
}
edit-open = { $count ->
    [one] 1 problem left
   *[other] { $count } problems left
}
edit-more-problems = { $count ->
    [one] … 1 more
   *[other] … { $count } more
}
edit-empty = empty file
edit-cell = cell { $number }
edit-new-cell = new cell { $number }
edit-hunk = { $place } of { $count }
edit-no-newline = no newline at end
edit-line = @ line { $line }
edit-further = @ another change

## Tool calls and commands

call-no-json = arguments are not valid JSON:
call-failed = failed
call-no-result = no result
call-step = step { $number }
call-step-of = step { $number } of { $total }
call-in = { $what } in { $place }
call-search-in = { $what }  in { $place }
call-changed-files = changed files
call-keeping = keeping “{ $what }”
call-without-result = without the result of { $what }
call-last-lines = { $count ->
    [one] last { NUMBER($count) } line
   *[other] last { NUMBER($count) } lines
}
call-from-line = from { $line }
call-unchecked = not checked
call-clean = clean
call-compacted = { $before } → { $after } tokens
call-exit = exit { $code }
call-still-running = still running
command-running = running
command-background = background
command-ended = ended
command-timed-out = timed out
command-rejected = rejected
command-stopped = stopped
command-folder = in { $folder }
command-network = network
command-no-network = no network
command-no-sandbox = no sandbox

## Plans and their todos

plan-word = plan
plan-superseded = superseded
plan-untitled = untitled
plan-key-build = build
plan-key-edit = edit
plan-key-save = save
plan-key-comment = comment
plan-key-todos = todos
plan-key-tick = check
plan-key-reword = edit
plan-key-insert = insert
plan-key-remove = delete
plan-key-move = move
todo-word = todo
todo-after = after { $places }
todo-progress = { $done } of { $count } done
todo-unchanged = no changes

## Sentences of the agent

agent-no-git = git is not installed
agent-no-repository = This folder is not in a git repository.
agent-conflicts = There are unresolved conflicts. Resolve them first.
agent-unfinished = A { $name } is not finished. Finish or abort it first.
agent-no-name = git does not know your name: git config --global user.name and user.email
agent-none-fits = None of the accepted changes can be committed.
agent-committed-already = The accepted changes are already committed.
agent-changed-meanwhile = The repository has changed meanwhile. Look at the changes again.
agent-filtered = A filter of this repository cannot be switched off. Use git diff.
agent-tools-changed = cache lost: tools changed: { $name }
agent-undo-busy = nothing can be undone while the model works
agent-no-workspace = no workspace here
agent-no-change = not a file change
agent-any-host = any host
agent-no-call = no call to run again
agent-stays-here = still working: the conversation continues here
agent-message-waits = your message is sent once you have answered
agent-marks-left = instrumentation is left in the code: { $name }

## Trust

trust-review = details
trust-asked = Trust this folder? Off until then: { $files }
trust-changed-asked = Trust the changes? Off until then: { $files }
trust-more = { $count } more
trust-checkers = checkers
trust-title = Trust this folder?
trust-changed-title = Trust the changes?
trust-title-held = This folder is trusted
trust-about = Its rules and checkers are off. Trusting it turns on:
trust-about-changed = New and changed files are off. Trusting them turns on:
trust-about-held = This is on:
trust-settings = settings, from the next start
trust-command = a prompt, sent when you type its name
trust-mode = a mode for the Shift+Tab cycle
trust-hooks = programs called at fixed points, in the sandbox
trust-skill = instructions that the model may load for a task
trust-servers = MCP servers; each asks before it starts
trust-rule-always = a rule, sent with every message
trust-rule-files = a rule, sent with matching files
trust-rule-model = a rule, sent when the model asks
trust-rule-user = a rule, sent when you name it
trust-checkers-about = checkers, in the sandbox (they run build scripts of this project)
trust-changed = changed
trust-limits = Trusted files instruct the model. They never set keys, providers, proxies, permissions or the sandbox.
trust-later = Not now; ask again after a change
trust-yes = Trust until a file changes
trust-keep = Keep trusting
trust-stop = Stop trusting, from your next message
trust-nothing = nothing in this folder needs your trust
trust-unsaved = not saved: { $why }

## Questions and approvals

question-answered = answered
question-skipped = skipped
question-cancelled = stopped
question-waiting = waiting
question-unanswered = not answered
question-answer = answer:
question-other = other:
question-more-other = , other:
question-type = Type an answer
question-type-other = Type another answer
question-skip = Skip
question-skip-all = Skip all questions
question-key-answer = answer
question-key-skip = skip
question-key-next = next
question-key-previous = previous
question-key-toggle = check
question-key-later = later
approval-allow = allow
approval-create = create
approval-edit = edit
approval-delete = delete
approval-rename = rename
approval-mode = change to { $mode } mode
approval-needs = needs
approval-needs-names = needs { $names }
permission-network = network
permission-git-write = git write access
permission-all = full access
approval-together = change { $at } of { $count } in one step: rejecting one rejects all
approval-why = why
approval-folder = in folder
approval-reach = would reach
approval-write = would write
approval-rule = always saves
approval-because = because
approval-protected = protected
approval-allowed-once = allowed once
approval-allowed-session = allowed for this session
approval-allowed-always = always allowed
approval-rejected = rejected
approval-rejected-always = always rejected
approval-hunks = { $made } of { $count } hunks allowed
approval-hunk = hunk { $index }
approval-key-once = once
approval-key-session = for this session
approval-key-always = always
approval-key-no = no
approval-key-more = more
approval-key-no-because = no, because…
approval-no-because = no, because:

## How an answer ended

ending-stopped = stopped
ending-empty = the answer is empty
ending-requests = stopped at the request limit for one turn; say continue to go on
ending-length = the answer reached the model's length limit; say continue to go on
ending-refused = the model refused to continue
ending-failed = the answer failed
ending-broke-off = connection lost, partial answer kept
ending-other = ended: { $word }

## What you did beside the conversation, and how to reverse it

done-undid = undid changes to { $files } · /redo
done-redid = redid changes to { $files } · /undo
done-undid-document = undid { $address } { $file } · /redo { $address }
done-redid-document = redid { $address } { $file } · /undo { $address }
done-finished-undo = finished an interrupted undo of { $files } · /redo
done-finished-redo = finished an interrupted redo of { $files } · /undo
undo-finished = { $count ->
    [one] Finished an interrupted undo: 1 file
   *[other] Finished an interrupted undo: { $count } files
}
redo-finished = { $count ->
    [one] Finished an interrupted redo: 1 file
   *[other] Finished an interrupted redo: { $count } files
}
undo-finished-other = { $count ->
    [one] Finished an interrupted undo of another conversation: 1 file
   *[other] Finished an interrupted undo of another conversation: { $count } files
}
undo-unfinished-other = An interrupted undo of another conversation cannot be finished
undo-unchanged = kept, because they were edited later: { $files }
undo-is-cut = an undo was interrupted; `sheaf undo` finishes it
done-unchanged = unchanged: { $what }
done-branched = continues after { $address } · /branches for the rest
done-branched-start = continues from the start · /branches shows what you left
done-mode = this answer continues in { $mode } mode · shift+tab
done-trusted = trusted this folder · /trust to change
done-distrusted = stopped trusting this folder · /trust to change
done-trust-passed = this folder's rules stay off · /trust to change
done-allowed = always allowed: { $rules }, in your settings · /permissions
done-exported = exported to { $file } · delete it to undo
done-exported-over = exported to { $file }, replacing the earlier file
done-saved = saved to { $file } · delete it to undo
done-saved-over = saved to { $file }, replacing the earlier file
done-committed = committed { $commit } · { $back }
done-remembered = remembered in { $place } · delete that line to undo
done-set = wrote { $name } to { $place } · { $command }
done-unset = removed { $name } from { $place } · { $command }

## Errors and next steps

error-word = error
error-without-message = failed without a message
reason-file-not-found = file not found
reason-file-exists = the file already exists
reason-permission-denied = permission denied
reason-path-outside-workspace = outside the workspace
reason-ignored-file = hidden: a secret, or listed in an ignore file
reason-edit-no-match = the text to replace is not in the file
reason-edit-ambiguous = the text to replace occurs more than once
reason-edit-stale = the model must read this part of the file first
reason-command-failed-to-start = did not start
reason-command-timeout = timed out
reason-tool-unknown = no such tool
reason-tool-arguments-invalid = invalid arguments
reason-tool-forbidden-in-mode = not allowed in this mode
reason-workspace-untrusted = this folder is not trusted: /trust
reason-tool-not-offered = not offered to this model
reason-tool-rejected = rejected
reason-cancelled = stopped
error-step-file-not-found = Check the path.
error-step-file-exists = Choose another name, or ask for an edit of the existing file.
error-step-permission-denied = Check the file's permissions.
error-step-path-outside-workspace = Start sheaf with --add-dir and the file's folder.
error-step-ignored-file = An ignore file hides it from the model. Change that file to allow it.
error-step-edit-no-match = The file changed since the model read it.
error-step-edit-ambiguous = Ask for an edit with more surrounding lines.
error-step-edit-stale = The model must read the file again.
error-step-command-failed-to-start = Check that the program is installed and in your PATH.
error-step-command-timeout = Ask to run it in the background, or with a longer timeout.
error-step-tool-unknown = The model called an unknown tool. It will try again.
error-step-tool-arguments-invalid = The model sent invalid arguments. It will try again.
error-step-tool-forbidden-in-mode = shift+tab changes the mode.
error-step-tool-failed = The model saw this error.
error-step-llm-auth = Check the provider's key. sheaf doctor shows which one is used.
error-step-llm-rate-limited = Wait a moment, then retry.
error-step-llm-overloaded = The provider is overloaded.
error-step-llm-context-length = Start a new conversation, or choose a model with a larger window.
error-step-llm-refusal = Rephrase the request.
error-step-llm-bad-response = The provider sent an invalid response.
error-step-llm-unavailable = Is the model's server running? sheaf doctor checks.
error-step-stream-interrupted = The partial answer is kept.
error-step-stream-protocol = The server did not send a document stream. Check its address.
error-step-unauthorized = Check the gateway's token (SHEAF_TOKEN). sheaf doctor shows which one is used.
error-step-rate-limited = Wait a moment, then retry.
error-step-max-turns = Say continue to go on.

## Header

header-tokens = { $count } tokens
header-sandbox-full = sandbox full
header-sandbox-partial = sandbox partial
header-sandbox-partial-but = sandbox partial ({ $but })
header-sandbox-none = NO SANDBOX

## Filter, search, mentions and queue

filter-everything = { "" }
filter-text = text
filter-edits = file changes
filter-commands = commands
filter-calls = other tool calls
filter-code = code and citations
filter-plans = plans and todos
filter-questions = questions and approvals
filter-errors = errors
filter-failed = errors, failed calls, commands and edits
filter-waiting = questions waiting for you
filter-running = still running
filter-nothing = nothing matches { $filter }; esc shows everything
search-first = search first, with /
search-from-beginning = wrapped to the beginning
search-from-end = wrapped to the end
search-nothing = no match for “{ $pattern }”
mention-documents = documents
mention-files = files
mention-files-and-code = files, functions and types
image-sized = image { $size } { $kind }, { $bytes }
image-unsized = image { $kind }, { $bytes }
queue-next = next
queue-queued = queued
queue-more = (and { $count } more)
inline-earlier = … earlier: /print shows all of it
view-too-small = sheaf: terminal too small

## Notifications of the terminal

attention-finished = sheaf finished: { $about }
attention-asks = sheaf has a question: { $about }

## The conversation as lines (--plain)
#
# Input is not translated: letters, numbers, s, enter, up, down, tab, commands.

plain-trust = { $question }. /trust shows more.
plain-note = note: { $text }
plain-begin = sheaf { $version }, { $who }, in { $folder }
plain-earlier = { $count ->
    [one] { $count } earlier turn; /print prints all of it, and a line like { $example } one document
   *[other] { $count } earlier turns; /print prints all of them, and a line like { $example } one document
}
plain-other = switched to another conversation, { $who }
plain-editor = an editor needs the terminal; run sheaf without --plain to use one
plain-branch = continuing from an earlier point; later messages are on another branch, see /branches
plain-plan-waits = the plan is waiting: /build builds it, any other text requests changes
plain-your-turn = your turn, { $mode } mode
plain-input-ended = input ended before this was answered
plain-pasted = { $count ->
    [one] { NUMBER($count) } line pasted; type a last line, or press enter to send it as it is
   *[other] { NUMBER($count) } lines pasted; type a last line, or press enter to send them as they are
}
plain-turn = turn { $address }
plain-message = { $address } message
plain-waiting = { $label }, waiting
plain-working = working, { $seconds } s
plain-working-on = working, { $seconds } s, { $what }
plain-entries = the list has { $count } entries
plain-hunks = { $accepted } of { $count } hunks accepted, { $rejected } rejected; /review continues, n rejects all
plain-letters = type y, n or another of the letters
plain-how-keys = each letter is a key; enter, up, down, tab are words; an empty line closes
plain-how-picker = type a number; other text filters the list; an empty line closes it
plain-how-commit = enter commits; other text becomes the message
plain-how-prompt = type the text; an empty line closes
plain-how-answer = type your answer; s skips
plain-how-number = type a number; s skips
plain-how-number-or-words = type a number or your own answer; s skips
plain-how-numbers = type one or more numbers; s skips
plain-how-numbers-or-words = type one or more numbers or your own answer; s skips
plain-number-to = type a number from 1 to { $count }; s skips
plain-options = the options are 1 to { $count }
plain-only-one = choose only one
plain-question = question: { $text }
plain-question-of = question { $place } of { $count }: { $text }
plain-word-always = always
plain-word-no = no
plain-word-yes = yes
plain-yes-once = yes, once
plain-yes-session = yes, for this session
plain-yes-always = yes, always
plain-no = no, with an optional reason
plain-kind-text = text
plain-kind-code-reference = code reference
plain-kind-code-block = code block
plain-kind-file-edit = file edit
plain-kind-tool-call = tool call
plain-kind-terminal-command = terminal command
plain-kind-plan = plan
plain-kind-approval = approval
plain-kind-question = question
plain-kind-error = error
plain-kind-todo-update = todo update
plain-sign-ok = ok
plain-sign-failed = failed
plain-sign-running = running
plain-sign-done = done:
plain-sign-open = open:

## Invalid settings

problem-language = ui.language: unknown language “{ $language }”; available: { $known }, and files in { $folder }

## Actions

# `hint-` is one to three words for the footer and the palette, `about-` a line for help and palette, both followed by the
# action's name with a hyphen for each dot. Text in backquotes is typed literally.

hint-branches = branches
about-branches = show the branches of this conversation and switch to one
hint-branch = branch here
about-branch = continue after the selected document on a new branch: `/branch 7.3`
hint-reword = reword
about-reword = edit a message and send it on a new branch: `/reword 7`
hint-again = again
about-again = repeat the last answer, or a call or question: `/again 7.3`
hint-conversation-new = new
about-conversation-new = start a new conversation; this one is saved
hint-conversation-clear = new
about-conversation-clear = same as /new
hint-conversation-resume = resume
about-conversation-resume = resume a saved conversation
hint-conversation-export = export
about-conversation-export = export the conversation to a file: `/export talk.html`, `.md`, `.json` or `.jsonl`
hint-conversation-cost = cost
about-conversation-cost = show tokens, time and cost of each turn
hint-conversation-compact = compact
about-conversation-compact = summarise the conversation to free context: `/compact keep the API decisions`
hint-conversation-rename = rename
about-conversation-rename = rename this conversation (turns off automatic titles): `/rename discount codes`
hint-conversation-drop = drop
about-conversation-drop = remove a tool result from context; you can still read it: `/drop 7.3`
hint-copy = copy
about-copy = copy a document, or the last answer: `/copy`, `/copy markdown|plain|code`, `all`, `7.3`
hint-print = print
about-print = print the conversation to the terminal's scrollback, where it stays
hint-copy-code = copy code
about-copy-code = copy only the document's code
hint-copy-as = copy as
about-copy-as = copy as Markdown, plain text or code only; one document or everything shown
hint-mode-next = mode
about-mode-next = switch to the next mode: agent, agent that asks first, plan, ask, debug
hint-mode = mode
about-mode = choose a mode, or `/mode plan`
hint-model = model
about-model = choose the model, or `/model NAME`
hint-effort = effort
about-effort = set how hard the model thinks: `/effort high`, `medium`, `low`, `off`, `auto`
hint-theme = theme
about-theme = choose a theme, or `/theme NAME`
hint-palette = palette
about-palette = search all commands
hint-mouse = mouse
about-mouse = `/mouse full` selects, `wheel` only scrolls, `off`: the terminal handles the mouse
hint-problems = problems
about-problems = list problems in the code of this conversation, and in the settings
hint-todo = todo
about-todo = show the current todo list
hint-context = context
about-context = show what is in context, and how many tokens each part uses
hint-inspect = inspector
about-inspect = show the raw server traffic beside the documents it produced
hint-trust = trust
about-trust = review whether to trust this folder
hint-sandbox = sandbox
about-sandbox = show the sandbox; `guard` and `strict` set how a partial one protects files
hint-permissions = permissions
about-permissions = show permission rules; `reset` revokes what you allowed for this session
hint-help = keys
about-help = same as /keys
hint-keys = keys
about-keys = show all keys and commands; ? only on an empty draft
hint-focus = transcript
about-focus = go to the waiting question, the transcript or the composer; while answering: queue the draft
hint-escape = stop
about-escape = close, end a search, stop the answer; twice on an empty draft: rewind
hint-interrupt = stop
about-interrupt = copy the selection, stop the answer or clear the draft; twice to quit
hint-leave = quit
about-leave = quit if the draft is empty; otherwise delete the next character
hint-quit = quit
about-quit = quit
hint-suspend = suspend
about-suspend = suspend to the shell; `fg` resumes
hint-redraw = redraw
about-redraw = redraw the screen
hint-panic = panic
about-panic = panic, to test that the terminal is restored (only under SHEAF_DEV=1)
hint-search = search
about-search = search the conversation; lower case matches either case
hint-search-next = next match
about-search-next = go to the next match
hint-search-previous = previous match
about-search-previous = go to the previous match
hint-filter = filter
about-filter = show only edits, commands, errors …: `/filter failed path:src/** words`; esc shows everything
hint-outline = outline
about-outline = list all messages and documents
hint-times = times
about-times = show when each document started and how long it took
hint-allow-once = allow once
about-allow-once = allow what waits for approval, once
hint-allow-session = allow for this session
about-allow-session = allow what waits for approval, for this session
hint-reject = reject
about-reject = reject what waits for approval
hint-plan-mark = build
about-plan-mark = mark the plan; Enter then builds it
hint-plan-build = build
about-plan-build = switch to agent mode and build the plan
hint-plan-save = save
about-plan-save = save the plan in .cursor/plans
hint-plan-comment = comment
about-plan-comment = request changes and keep planning
hint-plan-edit = edit
about-plan-edit = mark the plan; Enter then opens it and its todos in $VISUAL or $EDITOR
hint-todo-next = todo
about-todo-next = go to the next todo, then to the next document
hint-todo-previous = todo
about-todo-previous = go to the previous todo, then to the previous document
hint-todo-toggle = check
about-todo-toggle = check or uncheck the todo
hint-todo-remove = delete
about-todo-remove = mark the todo; Enter then deletes it from the plan
hint-todo-down = down
about-todo-down = move the todo down
hint-todo-up = up
about-todo-up = move the todo up
hint-todo-insert = insert
about-todo-insert = insert a todo after this one
hint-todo-reword = edit
about-todo-reword = edit the todo; on the plan itself: fold it
hint-next = next
about-next = go to the next document
hint-previous = previous
about-previous = go to the previous document
hint-turn-next = next turn
about-turn-next = go to your next message
hint-turn-previous = turn
about-turn-previous = go to your previous message
hint-next-edit = next edit
about-next-edit = go to the next file edit
hint-previous-edit = previous edit
about-previous-edit = go to the previous file edit
hint-next-error = next error
about-next-error = go to the next error, failed call or failed command
hint-previous-error = previous error
about-previous-error = go to the previous error, failed call or failed command
hint-next-question = next question
about-next-question = go to the waiting question or plan
hint-line-up = up
about-line-up = scroll up one line
hint-line-down = down
about-line-down = scroll down one line
hint-page-up = page up
about-page-up = scroll up one page
hint-page-down = page down
about-page-down = scroll down one page
hint-top = top
about-top = go to the start of the conversation
hint-bottom = end
about-bottom = go to the end and follow new output
hint-context-more = more context
about-context-more = show more unchanged lines around each change
hint-context-less = less context
about-context-less = show fewer unchanged lines around each change
hint-fold = fold
about-fold = fold or unfold the document
hint-fold-all = fold all
about-fold-all = fold every document to one line, or restore the usual view
hint-fold-kind = fold kind
about-fold-kind = fold or unfold every document of this kind
hint-reasoning = reasoning
about-reasoning = show or fold the model's reasoning
hint-open = open
about-open = mark the document's file; Enter then opens it in $VISUAL or $EDITOR
hint-review = review
about-review = review the changes of a turn or the conversation, and accept or reject each
hint-act = review
about-act = on an edit: review it; on an error: mark it; Enter then retries
hint-commit = commit
about-commit = commit the accepted changes in git, with a message that you can edit
hint-config = settings
about-config = show all settings and edit them in place
hint-memory = memory
about-memory = remember a line, or list the files of rules: `/memory use tabs`
hint-status = status
about-status = show the server, the model, the key's origin, limits and spend
about-skills = list skills with their token cost, and why some have no effect
hint-skills = skills
about-hooks = list hooks, and why some have no effect
hint-hooks = hooks
hint-usage = usage
about-usage = show what this turn and session cost, and the server's limits
init-message = Write AGENTS.md
hint-init = write rules
about-init = explore the project and write its AGENTS.md, or improve it
hint-diff = changes
about-diff = show all changes since the last commit
hint-btw = by the way
about-btw = ask a side question that stays out of the conversation: `/btw why two loops?`
hint-undo = undo
about-undo = undo the last turn's file changes, `/undo 7` a turn's, `/undo 7.3` a document's
hint-redo = redo
about-redo = redo what was undone last, `/redo 7.3` one document
hint-undo-this = undo this
about-undo-this = undo or redo the selected document's file changes
hint-rewind = rewind
about-rewind = rewind to a message: files, conversation or both: `/rewind 7`
hint-send = send
about-send = send the message, or steer the model while it works; `\` first inserts a newline
hint-queue = queue
about-queue = queue the message while the model works; otherwise send it
hint-newline = newline
about-newline = insert a newline
hint-clear = clear
about-clear = clear the draft; up restores it
hint-stash = stash
about-stash = stash the draft, or restore it
hint-editor = editor
about-editor = edit the draft, or the pasted text at the cursor, in $VISUAL or $EDITOR
hint-history = history
about-history = search messages you sent before, in any workspace
hint-picture = image
about-picture = paste an image; pasting or dropping an image's path works, too
hint-unfold = unfold
about-unfold = unfold or fold the last folded item; on pasted text: view or edit it
hint-background = background
about-background = on an empty draft: send the running command to the background, or list those
hint-tasks = background
about-tasks = list, follow and stop the commands that run in the background
hint-queued = queue
about-queued = edit, reorder or remove queued messages, or queue one: `/queue run the tests`
hint-vim = vim
about-vim = turn Vim editing of drafts on or off

## Messages after an action

action-context-lines = { $count ->
    [one] { NUMBER($count) } line of context
   *[other] { NUMBER($count) } lines of context
}
action-still-coming = the model is still answering; esc stops it
action-no-message = no message to send again
action-no-plan-to-build = no plan to build
action-no-plan-to-save = no plan to save
action-choose-a-todo = select a todo with the arrow keys first
action-newer-plan = there is a newer plan; this one was not changed
action-rename-how = type the new title: `/rename discount codes`
action-drop-which = name a document: `/drop 7.3`
action-no-address = { $word } is not an address such as 7.3
action-nothing-said = no messages yet
action-is-new = this conversation is already new
action-at-work = still working; esc stops it
action-no-document = no document selected; tab goes to the transcript
action-no-turn = { $word } is not a turn such as 7
action-answering = still working; esc stops it
action-neither-turn-nor-address = { $word } is neither a turn such as 7 nor an address such as 7.3
action-no-such-document = no document { $word }
action-redo-how = /redo redoes the last undo, /redo 7.3 one document
action-no-running-command = no command is running
action-no-todo = no todo list in this conversation
action-nothing-folded = nothing is folded
action-no-message-waits = no queued messages
action-vim-on = Vim editing on; esc for its commands
action-vim-off = Vim editing off
action-no-command = unknown command /{ $word }; a space before the slash sends it as text
action-no-command-near = unknown command /{ $word } (did you mean /{ $near }?)
action-run-how = ! runs a command in the sandbox; !! also hides it from the model
action-run-drafted = enter runs this command; a space before ! sends it as text
action-not-sent = not sent: { $peer } writes this conversation; { $command } continues a copy
action-runs-nothing = { $peer } cannot run your commands; sheaf's own agent can
action-run-later = still working; run commands after the answer, or esc stops it
action-again-stands = already applied; /undo { $address } first
action-again-what = only calls and questions run again; /again alone repeats the last answer
action-again-attached = the server keeps its branches; send the message again
action-which-document = which document? type its number (7.3), or select it with tab
action-not-here = { $word } is not on this branch
action-makes-no-calls = { $peer } cannot repeat calls; sheaf's own agent can
action-not-allowed-here = this cannot be allowed here; esc returns to the question
action-no-file-changed = no changes to review
action-change-whole = accept or reject this change as a whole; edit it once it is written
action-decided-by-hunks = you already decided on single hunks; /review (alt+r) continues
action-others-by-hunks = another change has decided hunks: y allows only this one, /review (alt+r) continues
action-answered-meanwhile = already answered; your text is in the draft
action-hunk-unchanged = not edited; the hunk is still waiting
action-hunk-comment = change requested for this hunk
action-rejected-already = already rejected
action-redoing = bringing it back; a then accepts it
action-never-written = rejected before it was written; ask the model again
action-nothing-to-print = nothing to print
action-printed = printed above, in the terminal's scrollback
action-copy-how = cannot copy { $word }; use markdown, plain or code, and all or 7.3
action-no-code = no code to copy
action-nothing-to-copy = nothing to copy
action-no-mode = unknown mode { $word }; use one of { $modes }
action-asking-for-models = loading models …
action-model-chosen = using { $model } from the next message
action-effort-deaf = { $peer } decides itself how hard it thinks
action-effort-chosen = effort { $effort } from the next message
action-effort-auto = effort from your settings, from the next message
action-no-effort = unknown effort { $word }; use auto, { $known }
action-no-theme = unknown theme { $word }; use auto, { $known }
action-no-mouse = unknown mouse mode { $word }; use full, wheel or off
action-mouse-full = mouse full: scrolls, selects and copies
action-mouse-wheel = mouse wheel: only scrolls; shift selects as the terminal does
action-mouse-off = mouse off: the terminal handles it
action-no-problems = no problems in the files of this conversation, nor in the settings
action-counting = counting …
action-sandbox-how = use /sandbox, /sandbox guard or /sandbox strict
action-permissions-how = use /permissions or /permissions reset
action-looking = loading …
action-rewind-how = esc again to rewind
transcript-reading-back = … reading earlier turns
transcript-reading-back-esc = … reading earlier turns; esc cancels
news-typed-meanwhile = not opened, as you were typing
news-draft = ctrl+s restores the draft of your last session
action-stashed = draft stashed; ctrl+s restores it
action-no-stash = no draft is stashed
action-no-approval = no approval is waiting
approval-rest = this is the next part of it: read it, then press the key again
approval-unseen = this is what is asked: read it, then press the key again
action-quit-how = ctrl+c again to quit
action-no-panic = unknown command /panic
action-nothing-to-read = nothing to read yet
action-no-question = no question is waiting
action-select-first = select a document first
action-names-no-file = this document names no file
action-no-more-below = no more below
action-no-more-above = no more above
action-from-the-top = wrapped to the top
action-from-the-bottom = wrapped to the bottom
action-only-this = this is the only one
action-none-of-these = nothing to show
action-click-again = click again to open { $path }

## Copied objects, within a sentence

copied-conversation = the conversation
copied-last-answer = the last answer
copied-reasoning = the reasoning
copied-selection = the selection
copied-what-came = the raw response
copied-curl = the request as curl
copied-resume = the command to resume it in { $folder }
copied-characters = { NUMBER($count) } { $count ->
    [one] character
   *[other] characters
}

## One-line prompts

prompt-new-todo = new todo
prompt-todo = todo
prompt-search = search

## Text inserted into the draft

draft-about-plan = About the plan "{ $title }":

## Branches

branches-title = Branches
branches-place = { $at } of { $count }
branches-count = { NUMBER($count) } { $count ->
    [one] branch
   *[other] branches
}
branches-there = there: turn { $turn }
branches-here = here: turn { $turn }
branches-there-rest = there: the rest of turn { $turn }
branches-here-rest = here: the rest of turn { $turn }
branches-rest = the rest of this answer

## Inspector

inspector-title = Inspector
inspector-nothing-yet = nothing received yet
inspector-steps = { $count } steps
inspector-steps-gone = { $count } steps, the first { $gone } dropped
inspector-too-much = the request is { $size }, too large to copy
inspector-no-request = no request: answered locally
inspector-body-too-large = body too large to keep
inspector-when = step { $step } · { $clock } · { $since } into the turn
inspector-when-after = step { $step } · { $clock } · +{ $gap } · { $since } into the turn
inspector-came = received, { $size }
inspector-came-whole = received whole, { $size }
inspector-run = { $count } deltas, { $size }: their text
inspector-made-here = local
inspector-more = … { $size } more
inspector-before = … { $size } above
inspector-made-nothing = no effect
inspector-document = { $kind } { $id }, { $state ->
    [open] open
   *[ended] ended
}
inspector-document-incomplete = { $kind } { $id }, { $state ->
    [open] open
   *[ended] ended
}, incomplete

## Outline

outline-title = outline
outline-place = { $at } of { $count }

## Pickers

list-nothing = no matches
list-chosen-now = current
list-mode = mode
list-effort = effort
prompt-export = Export to
export-elsewhere = another name
export-about-elsewhere = keep { $path }
export-overwrite = overwrite
export-about-overwrite = replace the file
save-about-replace = replace { $path }, which differs; esc keeps it
list-export-exists = the file exists
list-in-use = in use
model-has-effort = effort
list-model-more = sheaf login adds providers, from the next start
list-model = model
list-theme = theme
list-show-only = show only
list-sent-before = history
list-pasted = pasted
list-copy-as = copy as
list-open = open
list-do = commands
list-commands = commands
list-and = { $first } and { $last }
mode-about-agent = reads, edits and runs commands
mode-about-agent-asks = the agent asks before each change and each command
mode-about-plan = reads, asks and writes a plan
mode-about-ask = reads and answers
mode-about-debug = finds the cause of a bug, then fixes it
effort-about-auto = from your settings
effort-about-off = if the model allows it
theme-about-auto = follows the terminal's background
sandbox-about-guard = commands may write the whole workspace; protected files are restored
sandbox-about-strict = commands cannot create or replace top-level files
chip-view = view
chip-about-view = read it
chip-unfold = expand
chip-about-unfold = into plain text in the draft
chip-edit = edit
chip-about-edit = in $VISUAL or $EDITOR
chip-remove = remove
chip-about-remove = from the draft
copy-about-document = this document
copy-about-all = everything shown
copy-markdown = Markdown
copy-plain = plain
copy-code = code only
copy-all-markdown = all as Markdown
copy-all-plain = all as plain text
copy-all-code = all code
copy-about-markdown = the last answer as Markdown
copy-about-plain = without markup
copy-about-code = only its code
copy-about-all-code = all code shown
list-terms = enter shows matches, such as exit!=0 path:src/** words

## Review

commit-title = Commit
commit-title-branch = Commit { $hunks ->
    [one] 1 change
   *[other] { $hunks } changes
 } in { $files ->
    [one] 1 file
   *[other] { $files } files
 } to { $branch }
commit-title-detached = Commit { $hunks ->
    [one] 1 change
   *[other] { $hunks } changes
 } in { $files ->
    [one] 1 file
   *[other] { $files } files
 }, on no branch (detached HEAD)
commit-message = message
commit-writing = a model is writing it
commit-reading = reading the repository…
commit-running = Committing. Hooks may take a while.
commit-running-stay = a commit is running: wait for its hooks; quitting again stops them
commit-failed = Nothing was committed. Git says:
commit-no-message = a commit needs a message
commit-none-accepted = no changes to commit: alt+r shows them
commit-not-here = commits are not available here: no workspace on this machine
commit-more-files = and { $count } more files
commit-left-out = left out: { $what }
commit-author = Author: { $author }
commit-hooks = Git runs these hooks and filters: { $hooks }
commit-signs = Signs the commit, as your git is configured to
commit-note = Also writes a note to refs/notes/sheaf (commit.note = off writes none):
commit-note-short = files, lines, addresses, model and the first line of your message.
commit-note-full = files, lines, addresses, model and your whole message.
commit-no-push = Nothing is pushed. Your other changes stay staged or unstaged.
commit-done-said = committed { $commit }: { $said }
diff-title = Changes since the last commit
diff-none = nothing has changed since the last commit
diff-not-here = git changes are not available here: no workspace on this machine
diff-reading = reading the repository…
btw-how = write the question after it: /btw why two loops?
btw-answered = the answer beside the conversation is there: /btw shows it
btw-asking = waiting for the model
btw-facts = not part of the conversation
btw-no-answer = The model gave no answer.
config-title = Settings
config-default = default
config-none-of = `{ $value }` is none of these: { $values }.
config-written = Written to { $place }. It takes effect when sheaf starts again.
config-removed = Removed at { $place }. That takes effect when sheaf starts again.
config-written-now = Written to { $place }. It is in effect.
config-removed-now = Removed at { $place }. That is in effect.
config-overridden = Written to { $place }, but { $by } overrides it.
config-again = enter removes this setting from your file
config-not-yours = your file does not set this
config-secret = a secret, which is not edited here: sheaf login, key_file or key_command
config-kind-text = text
config-kind-switch = true | false
config-kind-from = whole number from { $least }
config-kind-between = whole number, { $least } to { $most }
config-kind-number = number
config-kind-duration = duration, such as "60s"
config-kind-address = address
config-kind-proxy = address of a proxy | none
config-kind-path = path
config-kind-list = list of texts
config-kind-words = list of { $words }
config-kind-rules = list of rules
config-kind-table = table of texts
config-kind-secret = secret text
config-kind-command = command, as a text for the shell or a list
permissions-remove = enter removes it from your settings
permissions-again = enter again removes this rule
permissions-add = + add a rule
permissions-add-how = such as Shell(git push), Write(docs/**), Read(~/notes/**), WebFetch(docs.rs)
memory-title = Remember this?
memory-reading = reading the files of rules…
memory-you = you, in all projects
memory-project = this project
memory-send = do not remember it: send it as a message
memory-about-you = It applies from your next conversation on.
memory-about-project = It is part of the project. /trust asks about the changed file again.
memory-about-new = new file
memory-files = Files of rules
memory-written-project = AGENTS.md has changed: /trust asks about it
memory-changed = { $file } has changed meanwhile: nothing was written
memory-not-utf8 = { $file } is not UTF-8 text; edit it with your editor
memory-link = { $file } is a link: nothing was written
status-title = Status
usage-title = Usage
status-server = server
status-model = model
status-key = key from
status-no-key = no key
status-window = context
status-tokens = { $count } tokens
status-mode = mode
status-folder = folder
status-version = version
status-turn = last turn
status-session = session
status-spent = { $count } tokens, { $cost }
status-spent-unknown = { $count } tokens, price unknown
status-limits = Limits of the server
status-limit-all = all
status-limit = { $limit }
status-limit-left = { $left } left
status-limit-left-of = { $left } of { $limit } left
status-limit-reset = resets: { $reset }
status-reported = reported { $ago }
status-no-limits = The server reports no limits.
status-not-asked = Not known yet: the server reports limits with its answers.
review-title = Review
review-this-turn = this turn
review-turn = turn { $turn }
review-enter-edits = press enter to edit it
review-everything = the whole conversation
review-facts = { $at } of { $count }   { $accepted } accepted   { $rejected } rejected
review-facts-short = { $at } of { $count }  ✓ { $accepted }  ✗ { $rejected }
review-rejected = ✗ rejected
review-failed = ✗ failed
review-not-written-yet = ◐ not written yet
review-accepted = ✓ accepted
review-applied = ○ applied
review-committed = ✓ committed
review-none-accepted = nothing to commit here: every change is rejected, undone or not written
review-hunk = hunk { $at } of { $count }
review-accepted-edited = ✓ accepted, edited
review-left-out = ✗ rejected
review-too-soon = too soon after the last key: press it again
review-you-say = your comment: { $comment }

## Rewind

rewind-title = Rewind
rewind-to = to a message
rewind-place = { $at } of { $count }
rewind-undone = undone
rewind-nothing-changed = no files changed since then
rewind-going = restores { $going } of { NUMBER($count) } { $count ->
    [one] file
   *[other] files
}
rewind-not-over = your later edits stay
rewind-ways = Rewind to turn { $turn }:
rewind-way-both = restore the conversation and { $count ->
    [one] { NUMBER($count) } file
   *[other] { NUMBER($count) } files
}
rewind-way-files = restore { $count ->
    [one] { NUMBER($count) } file
   *[other] { NUMBER($count) } files
} only
rewind-way-both-over = restore both and discard your later edits: { $count ->
    [one] { NUMBER($count) } file
   *[other] { NUMBER($count) } files
}
rewind-way-files-over = restore files only and discard your later edits: { $count ->
    [one] { NUMBER($count) } file
   *[other] { NUMBER($count) } files
}
rewind-way-conversation = restore the conversation only
rewind-partial = the oldest changes are no longer kept
rewind-in-all = … { $count } in total
rewind-lost = not kept
rewind-stays = kept
rewind-changed-since = edited later
rewind-changed-in = edited in turn { $turn }
rewind-comes-back = restored
rewind-goes = deleted
rewind-mode = permissions

## Saved conversations

sessions-title = conversations
sessions-none = no saved conversations
sessions-none-here = no matches in this folder; tab searches everywhere
sessions-everywhere = everywhere
sessions-everywhere-archived = everywhere, with archived
sessions-here = this folder
sessions-here-archived = this folder, with archived
sessions-facts = { $scope }  { $at } of { $count }
sessions-doomed = ctrl+d again deletes it permanently
sessions-untitled = (no messages)
sessions-archived = archived
sessions-git-branch = git { $name }
sessions-branches = { $count } branches
sessions-turns = { $place }  { $count } { $count ->
    [one] turn
   *[other] turns
}
ago-now = now
ago-seconds = { $count } s ago
ago-minutes = { $count } min ago
ago-hours = { $count } h ago
ago-days = { $count } d ago
ago-months = { $count } mo ago
ago-years = { $count } y ago

## Commands in the background

tasks-title = background commands
tasks-none = no command runs in the background
tasks-no-output = no output yet
tasks-stopping = stopping

## Queued messages

waiting-title = queued messages

## Footer: the action of a key, in one or two words

footer-choose = choose
footer-deltas = deltas
footer-any-key = any key
footer-skip-wait = continue
footer-close = close
footer-scroll = scroll
footer-lines = scroll
footer-page = page
footer-back = back
footer-accept = accept
footer-accept-all = accept all
footer-add = add
footer-write = write
footer-commit = commit
footer-open = open
footer-reject = reject
footer-edit = edit
footer-comment = comment
footer-hunk = hunk
footer-file = file
footer-side-by-side = side by side
footer-context = context
footer-each-hunk = each hunk
footer-turn-or-all = turn or all
footer-go-there = go there
footer-move = move
footer-reorder = move
footer-forks = forks
footer-files = files
footer-done = done
footer-rewind = rewind
footer-leave-it = keep this file
footer-take-back = remove
footer-turn = turn
footer-letters = letters
footer-find = find
footer-go = go
footer-step = step
footer-repaired = repaired
footer-same-document = same document
footer-copy = copy
footer-curl = curl
footer-take-up = resume
footer-folder-or-everywhere = folder or everywhere
footer-archive = archive
footer-archived-too = archived
footer-remove = delete
footer-reset = reset
footer-take = take
footer-complete = complete
footer-run = run
footer-answer = answer
footer-composer = composer
footer-stop = stop
footer-keys = keys
footer-build = build
footer-todos = todos
footer-tick = check
footer-reword = edit
footer-insert = insert
footer-steer = steer
footer-queue = queue
footer-newline = newline
footer-transcript = transcript
footer-send = send
footer-mode = mode
footer-palette = palette
footer-next = next
footer-previous = previous
footer-end-search = end search
footer-everything = show all
footer-fold = fold
footer-note = remember or send
footer-plan = plan

## Pages

page-leave = esc goes back
page-keys = Keys and commands
page-everywhere = Everywhere
page-in-composer = In the composer
page-in-transcript = In the transcript (tab)
page-in-text = In any text field
page-on-plan = On a plan
page-on-question = On a question
page-text-undo = undo
page-text-redo = redo
page-text-move = move by characters and lines
page-text-word = move by words
page-text-line = go to the start or the end of the line
page-text-select = select; typing replaces it, ctrl+c copies it
page-text-all = select all
page-text-delete = delete previous character, next character
page-text-cut-before = delete previous word
page-text-cut-after = delete next word
page-text-cut-line = delete to the start of the line, to its end
page-text-transpose = swap the characters at the cursor
page-text-yank = paste it back
page-question-choose = mark an option
page-question-check = check the marked option, after an arrow
page-question-send = answer and show the next question; send after the last one
page-question-previous = previous question
page-question-other = letters start an answer in your own words
page-question-later = leave the question waiting
page-question-approval = an approval, while you write: once, for this session, no
page-question-decide = an approval, after tab: once, no, no with a reason
page-question-mark = after tab: mark "for this session" or "always"; enter confirms
page-in-review = In the review (alt+r)
page-review-accept = accept the change, or write it if it is waiting; accept all
page-review-commit = commit what is accepted, or everything if nothing is decided
page-review-reject = reject it: undo it, or do not write it
page-review-edit = mark it for $VISUAL or $EDITOR; Enter opens it there
page-review-comment = request changes from the model
page-review-step = next change, previous change
page-review-file = next file, previous file
page-review-scroll = scroll, sideways in long lines
page-review-sides = side by side, or one column
page-review-context = more or fewer unchanged lines around a change
page-review-scope = this turn's changes, or the whole conversation's
page-commands = Commands
page-settings = Settings
page-pasted = Pasted
page-context = Context
page-context-about = about { $count } tokens
page-context-about-of = about { $count } tokens of { $of }
page-cost = Cost
page-cost-unknown = price unknown
page-cost-facts = { $sum }   { $sent } tokens in, { $made } out
page-cost-turn = turn
page-cost-in = in
page-cost-cached = cached
page-cost-out = out
page-cost-time = time
page-cost-cost = cost
page-cost-model = model
page-sandbox = Sandbox
page-permissions = Permissions
permissions-run-ask = Commands and file changes ask.
permissions-run-list = Commands ask; file changes do not, and can be undone.
permissions-run-sandbox = Commands and file changes run without asking while the full sandbox is active.
permissions-run-force = Only protected files ask.
permissions-doubtful = A deny or ask rule cannot be read, so everything asks: /problems shows it.
permissions-deny = Never
permissions-ask = Always ask
permissions-allow = Allowed
permissions-session = Allowed for this session
permissions-where = "always" saves to [approvals] in your config.toml; /permissions reset revokes this session's rules.

## Parts of the context

context-system-prompt = system prompt
context-rule = rule { $path }
context-servers = server instructions
context-tools = tools
context-tool = tool { $name }
context-messages = your messages
context-answers = answers
context-results = tool results
context-images = images
context-unsent = Not sent
context-all = total
context-appended = with your text appended
context-replaced = { $count ->
    [one] with { $count } part replaced by yours
   *[other] with { $count } parts replaced by yours
}
context-untrusted = not loaded: this workspace is not trusted
context-description = description only
context-awaits-nothing = always
context-awaits-files = needs matching files
context-awaits-model = until the model asks
context-awaits-user = until you name it
context-tool-count = { $count ->
    [one] { $count } tool
   *[other] { $count } tools
}
context-switched-off = disabled in the settings
context-calls-none = the settings say that this model calls no tools
context-no-checker = no checker can run here, or the workspace is not trusted
context-no-server = no language server is installed for this project, or the workspace is not trusted
context-no-skill = no skills here
context-no-search = no search service configured: set web.search.kind
context-edit-style = agent.edit_style excludes it
context-other-models = for models trained on it
context-small-window = small window: agent.profile = "full" offers all
context-guess = estimate: servers count differently
context-window = of { NUMBER($count) }
context-counted = the server counted { NUMBER($count) } in the last request
context-unpriced = no known price for { $model }
context-unpriced-own = no known price for the server's model

## Layers of the sandbox

wall-files = files
wall-processes = processes
wall-network = network
wall-capabilities = capabilities
wall-system-calls = system calls
wall-kernel-files = everything is read-only except the workspace and a private /tmp; secrets are hidden
wall-kernel-processes = commands see and signal only their own processes, and leave none running
wall-kernel-network = isolated, with only its own loopback
wall-kernel-capabilities = dropped; no program can regain them
wall-kernel-system-calls = seccomp blocks mounts, namespaces, tracing, other sockets and injected keystrokes
wall-seatbelt-files = seatbelt: only the workspace is writable; secrets are unreadable
wall-seatbelt-processes = processes that leave a command's session are not stopped; their number is not limited
wall-seatbelt-network = seatbelt: only this machine's loopback
wall-landlock = version { $version }: files, signals, abstract sockets
wall-landlock-old = version { $version }: files, but no signals and abstract sockets
wall-no-landlock = this kernel does not support it
wall-needless = not needed
wall-note-here-only = For this conversation only: { $why }
wall-note-halted = A command changed protected files. In this conversation, commands ask; new top-level files are blocked.
wall-note-guarded = Guard is on in this folder: commands you allow may write the whole workspace.
wall-note-guarded-files = After each command, protected files (.git, editor and agent settings, ignored files) are restored.
wall-note-guarded-meanwhile = Until then they are really changed, and programs that read them see it.
wall-note-guarded-lost = Deleted git objects are lost.
wall-note-guarded-after = If a command changes protected files you are told, and later commands ask.
wall-note-guarded-off = Folders with secrets stay closed. /sandbox strict turns guard off.
wall-note-strict = Commands cannot create or replace top-level files, so no protected file can change.
wall-note-strict-off = If this blocks your work: /sandbox guard allows it and restores protected files.
wall-note-needless = Guard is for partial sandboxes. Here the kernel already protects these files.

## Messages at the right of the footer

inline-branched = a new branch starts here
news-copied-by-terminal = copied { $what } (terminal, OSC 52)
news-copied = copied { $what } ({ $way })
news-not-copied = could not copy { $what }: { $why }
news-no-models = the server lists no models; /model NAME accepts any name
news-nothing-sent = no messages in the history
news-not-saved = could not write { $path }: { $why }
news-other-answer = unexpected reply (bug)
news-no-picture = no image in the clipboard
news-not-remembered = history not saved: { $why }
news-alone = no other conversations are available here
news-no-picture-file = { $name } is not a PNG, JPEG, GIF or WebP file
news-picture-too-large = { $name } is larger than 20 MiB
news-editor-ended = { $editor } exited: { $status }
news-editor-not-started = could not start { $editor }: { $why }; set $VISUAL or $EDITOR
news-outside = { $path } is outside the workspace
news-absent = { $path } does not exist
news-problems = { $count ->
    [one] a problem in the settings: /problems
   *[other] { $count } problems in the settings: /problems
}

## Parts of a message that were not typed

message-build = Build { $plan }
message-build-edited = Build { $plan } as edited
message-instructions = { $count ->
    [one] instructions, 1 line
   *[other] instructions, { $count } lines
}
message-with-plan = with your edited plan
pasted-lines = pasted { $count } lines
pasted-characters = pasted { $count } characters

# protected files that a killed program left
left-message = protected files
left-killed = sheaf was killed while a command ran
left-killed-aside = protected files that are new or changed since were moved aside:
left-aside = These protected files are new or changed. They were moved aside and do nothing:
left-as-it-is = This was left as it is:
left-file-changed = { $path } (changed), now { $aside }
left-file-new = { $path } (new), now { $aside }
left-more = and { $count } more
left-question = Put these files back?
left-leave = Leave them aside
left-leave-about = default
left-back = Put them back
left-back-about = if you made them yourself
left-stays-aside = Left aside. Nothing removes them.
left-put-back = Put back.
left-put-back-but = Put back, but:
left-stuck = { $path } stays aside: { $why }
left-note-too-large = the folder is too large to say what the command made
left-note-cut = the folder was looked at in part: not all that the command made is known
left-note-unreadable = the list from before a command is damaged: what that command made is unknown
left-note-gone = { $path } was there before the command, and is gone
left-note-stuck = { $path } is new or changed and could not be moved aside: { $why }
left-note-repository = the command may have made the repository { $path }: check its hooks and configuration first
left-note-later = { $path } is new or changed since the command ended: it was left as it is
left-note-unsure = { $path } may have been there before the command: it was left as it is
left-note-packaged = { $path } is new in an ignored folder or in a package: it was left
# Skills and hooks
skills-title = Skills
skills-about = The model loads a skill that fits a task; /name loads it at once.
skills-none = no skills: write .sheaf/skills/NAME/SKILL.md
hooks-title = Hooks
problems-title = Problems
problems-settings = { $count ->
    [one] 1 problem in the settings
   *[other] { $count } problems in the settings
}
hooks-about = Programs that sheaf calls at fixed points.
hooks-none = no hooks: write .sheaf/hooks.json
extensions-cost = { $count } tokens in each request
extension-loaded = loaded
extension-user-only = only by /name
extension-model-only = only by the model
extension-untrusted = not trusted, /trust asks
extension-shadowed = hidden by { $path }
extension-unsupported = not supported
extension-tokens = { $each } tokens listed, { $used } loaded
servers-title = MCP servers
servers-none = No MCP servers are configured. sheaf mcp add NAME -- COMMAND adds one.
servers-off = off
servers-unapproved = not approved
servers-redefined = changed since you approved it
servers-untrusted = its file is not trusted: /trust
servers-unusable = cannot be started
servers-starting = starting
servers-ready = ready, { $tools ->
    [one] 1 tool
   *[other] { $tools } tools
 }, { $tokens } tokens
servers-sign-in = needs sign-in: sheaf mcp login { $name }
servers-failed = failed
servers-changed = changed: not offered
servers-tokens = { $count } tokens
servers-more = { $count ->
    [one] 1 more line: pgdn
   *[other] { $count } more lines: pgdn
}
servers-given = given: { $names }
servers-gaps = sandbox: { $gaps }
footer-approve = approve
footer-restart = restart
footer-tools = tools
footer-switch = on/off
hint-mcp = MCP servers
about-mcp = show MCP servers and their tools

## First page, when no model is configured

first-peer = no model
first-welcome = Welcome to sheaf.
first-documents = An answer is a sheaf of documents: text, code, edits, commands, plans, questions.
first-numbers = Each is numbered, and can be folded, copied and answered on its own.
first-nothing = No key in the environment, no model server on localhost. Any of these helps:
first-login = run `sheaf login` in a shell: it stores an API key
first-variable = set `OPENAI_API_KEY`, or `OPENAI_BASE_URL` for your own server
first-local = start Ollama, LM Studio, llama.cpp or vLLM
first-gateway = `sheaf --gateway URL` for a documents gateway
first-found = No model is configured yet, but sheaf found:
first-with = with `{ $model }`
first-with-more = with `{ $model }` and { $count } more
first-none-loaded = no model loaded
first-key = key in `{ $variable }`
first-address = at { $url }, from `{ $variable }`
first-server = at { $url }
first-keep = for now; sheaf config set provider { $name } keeps it
first-tour = Show the tour first
first-tour-about = a recorded conversation; nothing is sent
first-live = Try it first
first-live-about = the real agent with a scripted model, in a temporary project; nothing is sent
first-question = Which model should I use? Other: the address of a documents gateway
first-message-waits = Your message is sent once you choose a model.
