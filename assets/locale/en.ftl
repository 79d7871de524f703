# What the interface says in English. Every other language falls back to this file.
#
# An id begins with the part of the screen that it stands on. Arguments are given beside it where they are not plain.
# Words that are typed or sent (modes, commands, keys of settings, kinds of documents in a filter) are data and not here.

## The rule above the draft

composer-placeholder = Ask, plan or build.  / commands
composer-unseen = { $count } new ↓
composer-shell = runs in the sandbox
composer-shell-silent = runs in the sandbox, kept from the model
composer-search = /{ $pattern }  { $place } of { $count }
composer-filter = only { $filter }
composer-unstored = not stored
composer-read-only = read-only
composer-queued = { $count } queued
composer-waiting = waiting for you
composer-retry = trying again in { $time }
composer-retrying = { $because }; trying again in { $time } ({ $attempt } of { $of })
composer-connecting = connecting to { $peer }
composer-first-word = waiting for the first word
composer-silent = silent for { $time }
composer-working = working

## Figures and counts
#
# NUMBER puts the mark between thousands; `$count` alone chooses the form.

figure-decimal = .
figure-group = ,
count-lines = { $count ->
    [one] { NUMBER($count) } line
   *[other] { NUMBER($count) } lines
}
count-signs = { $count ->
    [one] { NUMBER($count) } sign
   *[other] { NUMBER($count) } signs
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

## Plain lines: an approval

plain-to-the-letter = to the letter:

## Documents

key-send = send
key-back = back
key-confirm = confirm
key-retry = try again
document-broken-off = broken off
document-cut = cut
document-hidden = … { $size } more: y copies all of it
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

## Changes of files
#
# The operations stand in a column that is six wide.

edit-create = create
edit-edit = edit
edit-delete = delete
edit-rename = rename
edit-writing = writing
edit-pending = pending
edit-applied = applied
edit-rejected = rejected
edit-failed = failed
edit-nothing = nothing changes
edit-empty = an empty file
edit-cell = cell { $number }
edit-new-cell = new cell { $number }
edit-hunk = { $place } of { $count }
edit-line = @ line { $line }
edit-further = @ a further change

## Calls of tools and commands

call-no-json = arguments that are no JSON:
call-failed = failed
call-no-result = no result
call-step = step { $number }
call-step-tool = step { $number }: { $tool }
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
command-killed = killed
command-folder = in { $folder }
command-network = network
command-no-network = no network
command-no-sandbox = no sandbox

## Plans and their todos

plan-word = plan
plan-untitled = without a title
plan-key-build = build
plan-key-edit = edit
plan-key-save = save
plan-key-comment = comment
plan-key-todos = todos
plan-key-tick = tick
plan-key-reword = reword
plan-key-insert = insert
plan-key-remove = remove
plan-key-move = move
todo-word = todo
todo-after = after { $places }
todo-progress = { $done } of { $count }
todo-unchanged = nothing changed

## Questions and approvals

question-answered = answered
question-skipped = skipped
question-cancelled = cancelled
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
permission-git-write = git_write
permission-all = all
approval-together = { $at } of { $count } that are made together, and a no to one is a no to all of them, unless hunks were chosen before
approval-folder = in folder
approval-reach = would reach
approval-write = would write
approval-rule = always means
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
approval-key-session = this session
approval-key-always = always
approval-key-no = no
approval-key-more = more
approval-key-no-because = no, because…
approval-no-because = no, because:

## How an answer ended

ending-stopped = stopped
ending-requests = stopped at the limit of requests for one turn; say continue to go on
ending-length = the answer reached the longest the model may write; say continue to go on
ending-refused = the model refused to go on
ending-failed = the answer failed
ending-broke-off = the stream broke off; what came is kept
ending-other = ended: { $word }

## Errors and what one can do

error-word = error
error-without-message = failed without a message
error-step-file-not-found = Check the path.
error-step-file-exists = Choose another name, or ask for an edit of the file.
error-step-permission-denied = Check the rights of the file or of its folder.
error-step-path-outside-workspace = Start sheaf with --workspace on a folder that holds the file.
error-step-ignored-file = An ignore file keeps it from the model; change that if it may be seen.
error-step-edit-no-match = The file is not as the model thinks; ask it to read the file again.
error-step-edit-ambiguous = Ask for an edit with more lines around it.
error-step-edit-stale = The model has to read the file as it is now.
error-step-command-failed-to-start = Check that the program is installed and in the path.
error-step-command-timeout = Ask to run it in the background, or with more time.
error-step-tool-unknown = The model named a tool that there is not; it has been told.
error-step-tool-arguments-invalid = The model has been told what was wrong with the arguments.
error-step-tool-forbidden-in-mode = Shift+Tab changes the mode.
error-step-tool-rejected = The model knows that you said no.
error-step-tool-failed = The model has seen the message.
error-step-llm-auth = Check the provider's key; sheaf doctor says which one is used.
error-step-llm-rate-limited = Wait a moment.
error-step-llm-overloaded = The provider has too much to do.
error-step-llm-context-length = Begin a new conversation, or take a model with a larger window.
error-step-llm-refusal = Ask in other words.
error-step-llm-bad-response = The provider sent what nobody can read.
error-step-llm-unavailable = Check that the model's server runs; sheaf doctor looks for it.
error-step-stream-interrupted = What came is kept.
error-step-stream-protocol = The server sent what is no stream of documents; check its address.
error-step-unauthorized = Check the gateway's token (SHEAF_TOKEN); sheaf doctor says which one is used.
error-step-rate-limited = Wait a moment.
error-step-max-turns = Say continue to go on.

## The header

header-tokens = { $count } tokens
header-sandbox-full = sandbox full
header-sandbox-partial = sandbox partial
header-sandbox-partial-but = sandbox partial ({ $but })
header-sandbox-none = NO SANDBOX

## What is listed, found and in line

filter-everything = { "" }
filter-text = what was said
filter-edits = changes of files
filter-commands = what was run
filter-calls = other tools
filter-code = code and citations
filter-plans = plans and their todos
filter-questions = questions and approvals
filter-errors = errors
filter-failed = errors, failed calls, commands, edits
filter-waiting = questions that wait for you
filter-running = what is not over yet
filter-nothing = nothing here fits { $filter }; esc shows everything
search-first = search with / first
search-from-beginning = on from the beginning
search-from-end = on from the end
search-nothing = nothing says “{ $pattern }”
mention-documents = documents
mention-files = files
mention-files-and-code = files, functions and types
image-sized = image { $size } { $kind }, { $bytes }
image-unsized = image { $kind }, { $bytes }
queue-next = next
queue-queued = queued
queue-more = (and { $count } more)
inline-earlier = … earlier: /print writes all of it
view-too-small = sheaf: the terminal is too small

## Notifications of the terminal

attention-finished = sheaf finished: { $about }
attention-asks = sheaf has a question: { $about }

## The conversation as lines (--plain)
#
# What is typed stays as it is: letters, numbers, s, enter, up, down, tab, commands.

plain-note = note: { $text }
plain-begin = sheaf { $version }, { $who }, in { $folder }
plain-earlier = { $count ->
    [one] { $count } earlier turn; /print reads all of it, and a line like { $example } reads one document
   *[other] { $count } earlier turns; /print reads all of them, and a line like { $example } reads one document
}
plain-other = another conversation, { $who }
plain-editor = an editor needs the terminal; run sheaf without --plain for it
plain-branch = the conversation goes on from an earlier place; what was said since is on a branch, /branches
plain-plan-waits = the plan waits: /build carries it out, and words say what should be different
plain-your-turn = your turn, { $mode } mode
plain-input-ended = the input has ended, and nobody answers this
plain-pasted = { $count ->
    [one] { NUMBER($count) } line was pasted; the next line ends it, an empty one sends it as it is
   *[other] { NUMBER($count) } lines were pasted; the next line ends them, an empty one sends them as they are
}
plain-turn = turn { $address }
plain-message = { $address } message
plain-waiting = { $label }, waiting
plain-working = working, { $seconds } s
plain-working-on = working, { $seconds } s, { $what }
plain-entries = the list has { $count } entries
plain-hunks = of its { $count } hunks { $accepted } are accepted and { $rejected } left out in the review; /review goes on, n leaves out all
plain-letters = write y, n or another of the letters
plain-how-keys = each letter of a line is a key here; enter, up, down and tab are words; an empty line closes
plain-how-picker = write a number; other words narrow the list; an empty line closes it
plain-how-prompt = write the line; an empty one closes
plain-how-answer = write the answer; s skips
plain-how-number = write a number; s skips
plain-how-number-or-words = write a number, or other words; s skips
plain-how-numbers = write one or more numbers; s skips
plain-how-numbers-or-words = write one or more numbers, or other words; s skips
plain-number-to = write a number from 1 to { $count }; s skips
plain-options = the options are 1 to { $count }
plain-only-one = only one of them can be chosen
plain-question = question: { $text }
plain-question-of = question { $place } of { $count }: { $text }
plain-word-always = always
plain-word-no = no
plain-word-yes = yes
plain-yes-once = yes, this time
plain-yes-session = yes, for this session
plain-yes-always = yes, always
plain-no = no; a reason may stand behind it
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

## Settings that cannot be used

problem-language = ui.language: there is no language “{ $language }”; there are { $known }, and files in { $folder }

## What one can do

# `hint-` is one to three words for the footer and the palette, `about-` a line for help and palette; behind them the action's
# name, a hyphen for each dot. What stands in backquotes is typed as it is.

hint-branches = branches
about-branches = show the tree of the conversation and go to another branch
hint-branch = branch here
about-branch = go on behind the selected document, or `/branch 7.3`, on a branch of its own
hint-reword = reword
about-reword = write the selected message, else the last one, or `/reword 7`, again: what followed it stays on its branch
hint-again = again
about-again = make the selected call once more, or answer the selected question in another way, or `/again 7.3`, on a branch of its own
hint-conversation-new = new
about-conversation-new = begin a new conversation; this one is kept
hint-conversation-clear = new
about-conversation-clear = the same as /new
hint-conversation-resume = conversations
about-conversation-resume = take up a conversation that is kept: find it by its title or by what was said in it
hint-conversation-export = export
about-conversation-export = write the conversation into a file: `/export talk.html`, `.md`, `.json` or `.jsonl`
hint-conversation-cost = cost
about-conversation-cost = show what each turn took: tokens, time, dollars where the price is known
hint-conversation-compact = compact
about-conversation-compact = have a summary stand for what was said, so that the model has room again: `/compact what must not get lost`
hint-conversation-rename = rename
about-conversation-rename = give the conversation another title: `/rename discount codes`; no program changes it from then on
hint-conversation-drop = drop
about-conversation-drop = take the result of a call away from the model: `/drop 7.3`; it stays readable here
hint-copy = copy
about-copy = copy the document without gutters; `/copy` takes the last answer, `/copy markdown|plain|code` a form, `all` everything that is shown, `7.3` a document
hint-print = print
about-print = write what is shown into the terminal's own lines, where it stays when sheaf has ended
hint-copy-code = copy code
about-copy-code = copy only the code of the document
hint-copy-as = copy as
about-copy-as = copy as Markdown, plain or code only; the document or everything that is shown
hint-mode-next = mode
about-mode-next = go to the next mode: agent, plan, ask, debug
hint-mode = mode
about-mode = choose a mode, or `/mode plan`
hint-model = model
about-model = choose the model, or `/model NAME`
hint-effort = effort
about-effort = how hard the model thinks: `/effort high`, medium, low or off, `auto` as the settings say
hint-theme = theme
about-theme = choose the colours, or `/theme NAME`
hint-palette = palette
about-palette = find anything one can do
hint-mouse = mouse
about-mouse = what the mouse does here: `/mouse full` marks and selects, `wheel` only scrolls, `off` leaves it to the terminal
hint-problems = problems
about-problems = show what is wrong with the settings
hint-context = context
about-context = show what the model is told, and what each part costs
hint-inspect = inspector
about-inspect = show what came, byte for byte, beside the documents that it made
hint-trust = trust
about-trust = have it asked whether the rules, settings and checkers of this folder may act
hint-sandbox = sandbox
about-sandbox = show what holds commands; where that is partial, `guard` lets them write the whole workspace and puts back what is protected, `strict` does not
hint-permissions = permissions
about-permissions = show what runs without a question and what never does; `reset` takes back what was allowed for this session
hint-help = keys
about-help = the same as /keys
hint-keys = keys
about-keys = show every key and command
hint-focus = transcript
about-focus = go from the composer to the transcript and back; to a question that waits first
hint-escape = stop
about-escape = close what is open, end a search, show everything again; else go back to the composer; else stop the answer; again, with nothing written, rewind
hint-interrupt = stop
about-interrupt = copy what is selected; else stop the answer; else clear the draft; twice to quit
hint-leave = quit
about-leave = quit, when nothing is written; else take the letter behind the caret away
hint-quit = quit
about-quit = quit
hint-suspend = suspend
about-suspend = go back to the shell; `fg` comes back here
hint-redraw = redraw
about-redraw = paint the screen again
hint-panic = panic
about-panic = panic, to see that the terminal is given back (only under SHEAF_DEV=1)
hint-search = search
about-search = search the conversation; small letters mean both
hint-search-next = next match
about-search-next = go to the next place that the search found
hint-search-previous = match before
about-search-previous = go to the place before that the search found
hint-filter = filter
about-filter = show only edits, commands, errors …, or `/filter failed path:src/** words`; esc shows everything again
hint-outline = outline
about-outline = list every message and document; where one moves in it the conversation follows
hint-times = times
about-times = show when each document began and how long it took
hint-plan-build = build
about-plan-build = build the plan: change to agent mode and say so
hint-plan-save = save
about-plan-save = save the plan under .cursor/plans
hint-plan-comment = comment
about-plan-comment = say what should be different and keep planning
hint-plan-edit = edit
about-plan-edit = edit the plan and its todos in $VISUAL or $EDITOR
hint-todo-next = todo
about-todo-next = go to the next todo of the plan, then on to the next document
hint-todo-previous = todo
about-todo-previous = go to the todo before, then to the document before
hint-todo-toggle = tick
about-todo-toggle = tick the todo, or take the tick away
hint-todo-remove = remove
about-todo-remove = take the todo out of the plan
hint-todo-down = down
about-todo-down = move the todo down
hint-todo-up = up
about-todo-up = move the todo up
hint-todo-insert = insert
about-todo-insert = write a new todo behind this one
hint-todo-reword = reword
about-todo-reword = write the todo in other words; on the plan itself: fold it
hint-next = next
about-next = go to the next document
hint-previous = previous
about-previous = go to the document before
hint-turn-next = next turn
about-turn-next = go to the next message of yours
hint-turn-previous = turn
about-turn-previous = go to the message of yours before
hint-next-edit = next edit
about-next-edit = go to the next edit of a file
hint-previous-edit = previous edit
about-previous-edit = go to the edit of a file before
hint-next-error = next error
about-next-error = go to the next error, failed call or failed command
hint-previous-error = previous error
about-previous-error = go to the error, failed call or failed command before
hint-next-question = next question
about-next-question = go to the question that waits
hint-line-up = up
about-line-up = scroll up by a line
hint-line-down = down
about-line-down = scroll down by a line
hint-page-up = page up
about-page-up = scroll up by a page
hint-page-down = page down
about-page-down = scroll down by a page
hint-top = top
about-top = go to the beginning of the conversation
hint-bottom = end
about-bottom = go to the end and follow it
hint-fold = fold
about-fold = fold or unfold the document
hint-fold-all = fold all
about-fold-all = fold every document to its line, or show all as usual again
hint-fold-kind = fold kind
about-fold-kind = fold or unfold every document of this kind
hint-reasoning = reasoning
about-reasoning = show or fold what the model thought
hint-open = open
about-open = open the file of the document in $VISUAL or $EDITOR, or one of those that it names
hint-review = review
about-review = look at every change of the turn, or of the conversation, and accept or reject each
hint-act = review
about-act = on an edit: review it; on an error: try again
hint-undo = undo
about-undo = take back what the last turn did to files, `/undo 7` that of a turn, `/undo 7.3` that of a document
hint-redo = redo
about-redo = do again what was taken back last, `/redo 7.3` what a document did
hint-undo-this = undo this
about-undo-this = take back what the selected document did to files, or do it again
hint-rewind = rewind
about-rewind = go back to before a message: files, conversation or both, or `/rewind 7`
hint-send = send
about-send = send the message; while an answer comes it is heard at the next step, or waits for its turn where that cannot be; a backslash before the caret breaks the line
hint-queue = newline
about-queue = break the line; while an answer comes: queue the message behind it
hint-newline = newline
about-newline = break the line
hint-clear = clear
about-clear = clear the draft; up brings it back
hint-editor = editor
about-editor = write the draft, or the pasted text at the caret, in $VISUAL or $EDITOR
hint-history = history
about-history = find what was sent before, in any workspace
hint-picture = picture
about-picture = put the picture of the clipboard into the draft; a path that is pasted or dragged here does the same
hint-chip = pasted
about-chip = view, unfold, edit or remove the pasted text or picture at the caret
hint-queued = queue
about-queued = edit, reorder or take back the messages that wait for their turn
hint-vim = vim
about-vim = edit drafts as in Vim, or as usual again

## Answers to what was done

action-still-coming = the answer is still coming; esc stops it
action-no-message = there is no message to send again
action-no-plan-to-build = there is no plan to build
action-no-plan-to-save = there is no plan to save
action-choose-a-todo = choose a todo with the arrows first
action-newer-plan = there is a newer plan; this one stays as it was
action-rename-how = say what it is called: `/rename discount codes`
action-drop-which = say which: `/drop 7.3`
action-no-address = { $word } is no address such as 7.3
action-nothing-said = nothing was said yet
action-is-new = this conversation is new
action-at-work = it is still at work: esc stops it
action-no-document = no document is selected: tab goes to them
action-no-turn = { $word } is no turn such as 7
action-answering = an answer is being made: esc stops it
action-neither-turn-nor-address = { $word } is neither a turn such as 7 nor an address such as 7.3
action-no-such-document = there is no document { $word }
action-redo-how = a turn is done again with /redo alone, a document with /redo 7.3
action-no-chip = nothing that was pasted is at the caret
action-no-message-waits = no message waits
action-vim-on = drafts are edited as in Vim; esc for its commands
action-vim-off = drafts are edited as usual
action-no-command = there is no command /{ $word }; /help lists them; a space before the slash sends it as text
action-run-how = ! runs the command behind it in the sandbox; !! keeps it from the model
action-runs-nothing = { $peer } runs no commands of yours; sheaf's own agent does
action-run-later = a command waits until the answer is over; esc stops it
action-again-stands = it stands already: /undo { $address } first
action-again-what = only calls and questions are done again; /branch goes on behind anything
action-which-document = which one? 7.3 is document 3 of turn 7; tab and f3 do it to the one that is selected
action-not-here = there is no { $word } on this branch
action-makes-no-calls = { $peer } makes no calls of yours; sheaf's own agent does
action-not-allowed-here = it cannot be allowed here; esc goes back to the question
action-no-file-changed = no file was changed
action-change-whole = whoever asks takes this change whole or not at all; it can be edited once it is written
action-decided-by-hunks = hunks of this change were decided on: /review (ctrl+e) goes on there
action-others-by-hunks = hunks of a change that waits were decided on: y allows only this one, /review (ctrl+e) goes on there
action-answered-meanwhile = it was answered meanwhile: what you wrote is in the draft
action-hunk-unchanged = nothing was changed: the hunk waits as it was
action-hunk-comment = what should be different here
action-rejected-already = it is rejected already
action-nothing-to-print = there is nothing to print
action-printed = it stands in the terminal's own lines, above where sheaf was started
action-copy-how = { $word } cannot be copied; say markdown, plain or code, and all or the number of a document
action-no-code = there is no code in it
action-nothing-to-copy = nothing to copy
action-no-mode = there is no mode { $word }; the modes are agent, plan, ask and debug
action-asking-for-models = asking for the models …
action-model-chosen = the next answer comes from { $model }
action-effort-deaf = { $peer } decides itself how hard it thinks
action-effort-chosen = from the next message on the model thinks with effort { $effort }
action-effort-auto = from the next message on the model thinks as hard as the settings say
action-no-effort = the effort cannot be { $word }; it is auto, { $known }
action-no-theme = there is no theme { $word }; there are auto, { $known }
action-no-mouse = the mouse cannot be { $word }; it is full, wheel or off
action-mouse-full = mouse: scrolls, selects, marks what is copied
action-mouse-wheel = mouse: scrolls; shift marks in the terminal's own way
action-mouse-off = mouse: off; it is the terminal's own
action-no-problems = nothing is wrong with the settings
action-counting = counting …
action-sandbox-how = /sandbox shows what holds commands; guard and strict may stand behind it
action-permissions-how = /permissions shows what runs without a question; reset may stand behind it
action-looking = looking …
action-quit-how = ctrl+c again to quit
action-no-panic = there is no command /panic
action-nothing-to-read = nothing to read yet
action-no-question = no question waits
action-select-first = select a document first
action-names-no-file = this document names no file
action-no-more-below = no more below
action-no-more-above = no more above
action-from-the-top = none below: from the top
action-from-the-bottom = none above: from the bottom
action-only-this = there is only this one
action-none-of-these = there is none
action-click-again = click again to open { $path }

## What was copied, within a sentence

copied-conversation = the conversation
copied-last-answer = the last answer
copied-reasoning = the reasoning
copied-selection = what is selected
copied-what-came = what came
copied-curl = the request as curl
copied-resume = what takes it up in { $folder }
copied-characters = { NUMBER($count) } { $count ->
    [one] character
   *[other] characters
}

## A line to write

prompt-new-todo = new todo
prompt-todo = todo
prompt-search = search

## What is put into the draft

draft-about-plan = About the plan "{ $title }":

## The tree of branches

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

## The inspector

inspector-title = Inspector
inspector-nothing-yet = nothing has come yet
inspector-steps = { $count } steps
inspector-steps-gone = { $count } steps, the first { $gone } gone
inspector-too-much = the request has { $size }, too much to copy
inspector-no-request = no request went out: whoever answers is in this program
inspector-body-too-large = the body is too large to be kept
inspector-when = step { $step } · { $clock } · { $since } into the turn
inspector-when-after = step { $step } · { $clock } · +{ $gap } · { $since } into the turn
inspector-came = came, { $size }
inspector-came-whole = came whole, { $size }
inspector-made-here = made here
inspector-more = … { $size } more
inspector-before = … { $size } before
inspector-made-nothing = made nothing
inspector-document = { $kind } { $id }, { $state ->
    [open] open
   *[ended] ended
}
inspector-document-incomplete = { $kind } { $id }, { $state ->
    [open] open
   *[ended] ended
}, incomplete

## The outline

outline-title = outline
outline-place = { $at } of { $count }

## Lists to choose from

list-nothing = nothing like that
list-chosen-now = chosen now
list-mode = mode
list-effort = effort
list-model = model
list-theme = theme
list-show-only = show only
list-sent-before = sent before
list-pasted = pasted
list-copy-as = copy as
list-open = open
list-do = do
list-commands = commands
mode-about-agent = reads, changes and runs
mode-about-plan = reads, asks and writes a plan
mode-about-ask = reads and answers
mode-about-debug = finds the cause of a fault, then mends it
effort-about-auto = as the settings say
effort-about-off = where the model can be told to
theme-about-auto = by the terminal's background
sandbox-about-guard = commands may write the whole workspace; what is protected is put back
sandbox-about-strict = nothing new at the top of the workspace
chip-view = view
chip-about-view = read it
chip-unfold = unfold
chip-about-unfold = into the draft
chip-edit = edit
chip-about-edit = in $VISUAL or $EDITOR
chip-remove = remove
chip-about-remove = take it away
copy-about-document = this document
copy-about-all = everything that is shown
copy-markdown = Markdown
copy-plain = plain
copy-code = code only
copy-all-markdown = all as Markdown
copy-all-plain = all as plain text
copy-all-code = all code
copy-about-markdown = the last answer as Markdown
copy-about-plain = without marks
copy-about-code = only its code
copy-about-all-code = all code that is shown
list-terms = enter shows what fits, as in exit!=0 path:src/** words

## The review

review-title = Review
review-this-turn = this turn
review-everything = the whole conversation
review-facts = { $at } of { $count }   { $accepted } accepted   { $rejected } rejected
review-facts-short = { $at } of { $count }  ✓ { $accepted }  ✗ { $rejected }
review-rejected = ✗ rejected
review-failed = ✗ failed
review-not-written-yet = ◐ not written yet
review-accepted = ✓ accepted
review-applied = ○ applied
review-hunk = hunk { $at } of { $count }
review-accepted-edited = ✓ accepted, edited
review-left-out = ✗ left out
review-too-soon = too soon after the last one: press it again
review-you-say = you say: { $comment }

## Going back

rewind-title = Rewind
rewind-to = to before a message
rewind-place = { $at } of { $count }
rewind-no-file = no file would go back
rewind-undone = undone
rewind-nothing-changed = no file was changed since then
rewind-going = { $going } of { NUMBER($count) } { $count ->
    [one] file
   *[other] files
} go back
rewind-over = what was changed since is lost
rewind-over-key = (o keeps it)
rewind-not-over = what was changed since stays
rewind-not-over-key = (o takes it back, too)
rewind-partial = of the oldest changes nothing is kept any more
rewind-in-all = … { $count } in all
rewind-lost = was not kept
rewind-stays = stays
rewind-changed-since = changed since
rewind-changed-in = changed in { $turn }
rewind-comes-back = comes back
rewind-goes = goes
rewind-mode = mode

## Conversations that are kept

sessions-title = conversations
sessions-none = no conversation is kept yet
sessions-none-here = nothing like that in this folder: tab looks everywhere
sessions-everywhere = everywhere
sessions-everywhere-archived = everywhere, archived too
sessions-here = this folder
sessions-here-archived = this folder, archived too
sessions-facts = { $scope }  { $at } of { $count }
sessions-doomed = ctrl+d once more removes it for good
sessions-untitled = (nothing was said)
sessions-archived = archived
sessions-turns = { $place }  { $count } { $count ->
    [one] turn
   *[other] turns
}
ago-now = now
ago-minutes = { $count } min ago
ago-hours = { $count } h ago
ago-days = { $count } d ago
ago-months = { $count } mo ago
ago-years = { $count } y ago

## Messages that wait for their turn

waiting-title = waiting for their turn

## The footer: what a key does, in a word or two

footer-choose = choose
footer-close = close
footer-scroll = scroll
footer-lines = scroll
footer-page = page
footer-back = back
footer-accept = accept
footer-reject = reject
footer-edit = edit
footer-comment = comment
footer-hunk = hunk
footer-file = file
footer-side-by-side = side by side
footer-turn-or-all = turn or all
footer-go-there = go there
footer-move = move
footer-reorder = move
footer-forks = where it forks
footer-files-and-conversation = files and conversation
footer-files = files
footer-conversation = conversation
footer-a-file = a file
footer-leave-it = leave it
footer-changed-since = changed since
footer-take-back = take back
footer-turn = turn
footer-letters = letters
footer-find = find
footer-go = go
footer-step = step
footer-repaired = repaired
footer-same-document = same document
footer-copy = copy
footer-curl = curl
footer-take-up = take up
footer-folder-or-everywhere = folder or everywhere
footer-archive = archive
footer-archived-too = archived too
footer-remove = remove
footer-done = done
footer-take = take
footer-complete = complete
footer-run = run
footer-answer = answer
footer-composer = composer
footer-stop = stop
footer-keys = keys
footer-skip = skip
footer-build = build
footer-todos = todos
footer-tick = tick
footer-reword = reword
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
footer-plan = plan

## Pages to read

page-leave = esc goes back
page-keys = Keys and commands
page-everywhere = Everywhere
page-in-composer = In the composer
page-in-transcript = In the transcript (tab)
page-in-text = Wherever one writes
page-on-plan = On a plan
page-on-question = On a question
page-text-undo = undo
page-text-redo = redo
page-text-word = go by words
page-text-line = go to the beginning of the line, to its end
page-text-select = select; what is typed takes its place, ctrl+c copies it
page-text-all = select everything
page-text-cut-before = take the word before away
page-text-cut-after = take the word behind away, the rest of the line
page-text-yank = put in again what was taken away
page-question-choose = choose, or toggle where several may be chosen
page-question-send = send the answers
page-question-other = answer in your own words
page-question-skip = skip
page-question-approval = an approval: once, this session, always, no because …
page-in-review = In the review (ctrl+e)
page-review-accept = accept the change, or let it be written
page-review-reject = reject it: it is taken back, or not written
page-review-edit = edit it in $VISUAL or $EDITOR
page-review-comment = tell the model what should be different
page-review-step = go to the next change, to the one before
page-review-file = go to the next file, to the one before
page-review-scroll = scroll, to the side where lines are long
page-review-sides = old and new side by side, or in one column
page-review-scope = the changes of this turn, or of the whole conversation
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
permissions-run-ask = Commands and changes of files ask (approvals.run = "ask").
permissions-run-list = Commands ask; changes of files are made, and can be taken back (approvals.run = "list").
permissions-run-sandbox = Commands and changes of files run without a question where the sandbox holds whole (approvals.run = "sandbox").
permissions-run-force = Nothing asks in this run but what is protected (--force).
permissions-doubtful = A rule that denies or asks could not be read: until it is mended, everything asks. /problems names it.
permissions-deny = Never
permissions-ask = Always asks
permissions-allow = Allowed
permissions-session = Allowed in this session
permissions-none = nothing
permissions-where = What is allowed for always stands under [approvals] in your config.toml and is taken back there; /permissions reset takes back what holds for this session.

## What the model is told, part by part

context-system-prompt = system prompt
context-rule = rule { $path }
context-servers = instructions of servers
context-tools = tools
context-tool = tool { $name }
context-messages = your messages
context-answers = answers
context-results = results of tools
context-images = images
context-all = all
context-appended = with your words at its end
context-replaced = { $count ->
    [one] with { $count } of its parts in your words
   *[other] with { $count } of its parts in your words
}
context-untrusted = not loaded: you have not said that you trust this workspace
context-description = its description
context-not-sent = not sent: { $when }
context-awaits-nothing = always
context-awaits-files = with matching files
context-awaits-model = when the model asks
context-awaits-user = when you name it
context-tool-count = { $count ->
    [one] { $count } tool
   *[other] { $count } tools
}
context-not-offered = not offered: { $why }
context-switched-off = switched off in the settings
context-calls-none = the settings say that the model calls none
context-no-search = no service is configured: set web.search.kind
context-edit-style = agent.edit_style says otherwise
context-other-models = for models that were trained on it
context-small-window = the window is small: agent.profile = "full" offers all
context-guess = a guess: servers differ
context-window = of { NUMBER($count) }
context-counted = the server counted { NUMBER($count) } for the last request
context-unpriced = what { $model } costs is not known here
context-unpriced-own = what the server's own model costs is not known here

## What holds commands, wall by wall

wall-files = files
wall-processes = processes
wall-network = network
wall-capabilities = capabilities
wall-system-calls = system calls
wall-kernel-files = everything is read-only but the workspace and a private /tmp; secrets are covered
wall-kernel-processes = a command sees and signals its own processes only, and leaves none behind
wall-kernel-network = a network of its own with nothing but its loopback
wall-kernel-capabilities = dropped, and no program gives them back
wall-kernel-system-calls = a filter of seccomp denies mounts, namespaces, tracing, other sockets, typing
wall-seatbelt-files = seatbelt: only the workspace is written; secrets are not read
wall-seatbelt-processes = what leaves the session of a command is not found behind it; there is no bound on their number
wall-seatbelt-network = seatbelt: nothing but the loopback of this machine
wall-landlock = version { $version }: files, signals, abstract sockets
wall-landlock-old = version { $version }: files, but not signals and abstract sockets
wall-no-landlock = the kernel does not have it
wall-needless = it is not needed: sheaf makes its own namespaces
wall-note-here-only = It holds for this conversation only: { $why }
wall-note-halted = A command has changed what is protected: in this conversation each one asks, and the top of the workspace is held.
wall-note-guarded = Guard is on in this folder: a command that you have let run may write the whole workspace. What is protected (.git, editors' and agents' settings, ignored files) is compared before and after it and put back from a copy; in between, it was changed, and what reads it then reads what the command wrote. Objects of git are not kept. A command that changes what is protected is told to you, and each one behind it asks. Folders that hold secrets stay as they are. /sandbox strict ends it.
wall-note-strict = Commands make nothing new at the top of the workspace and replace no file there, so that nothing protected can change. If that is in your way, /sandbox guard lets them, in this folder, and puts back what is protected.
wall-note-needless = Guard is for partial sandboxes: here the kernel holds what is protected and lets go the rest.

## News at the right of the footer

inline-branched = from here on it is another branch
news-copied-by-terminal = copied { $what } (terminal, OSC 52)
news-copied = copied { $what } ({ $way })
news-not-copied = { $what } could not be copied: { $why }
news-no-models = the server lists no models; /model NAME takes any name
news-nothing-sent = nothing was sent before
news-saved = saved as { $path }
news-not-saved = { $path } could not be written: { $why }
news-written = written to { $path }
news-other-answer = the answer is to another question
news-no-picture = the clipboard holds no picture
news-not-remembered = what was sent is not remembered: { $why }
news-alone = there is only this conversation here
news-no-picture-file = { $name } is no PNG, JPEG, GIF or WebP
news-picture-too-large = { $name } is larger than 20 MiB
news-editor-ended = { $editor } ended with { $status }
news-editor-not-started = { $editor } could not be started: { $why }; set $VISUAL or $EDITOR
news-outside = { $path } is outside the workspace
news-absent = { $path } does not exist
news-problems = { $count ->
    [one] the settings have a problem: /problems
   *[other] the settings have { $count } problems: /problems
}

## What was pasted into the draft

pasted-lines = pasted { $count } lines
pasted-characters = pasted { $count } characters
