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

## Settings that cannot be used

problem-language = ui.language: there is no language “{ $language }”; there are { $known }, and files in { $folder }
