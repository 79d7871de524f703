# What the interface says in English. Every other language falls back to this file.
#
# An id begins with the part of the screen that it stands on. Arguments are given beside it where they are not plain.
# Words that are typed or sent (modes, commands, keys of settings, kinds of documents in a filter) are data and not here.

## The rule above the draft

composer-placeholder = Ask, plan or build.  / commands
composer-unseen = { $count } new ↓
composer-shell = runs in the sandbox
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

## Settings that cannot be used

problem-language = ui.language: there is no language “{ $language }”; there are { $known }, and files in { $folder }
