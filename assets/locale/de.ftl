# Was die Oberfläche auf Deutsch sagt. Was hier fehlt, erscheint auf Englisch; ein Test hält beide Dateien gleich vollständig.

## Die Linie über dem Entwurf

composer-placeholder = Fragen, planen, bauen.  / Befehle
composer-unseen = { $count } neu ↓
composer-shell = läuft in der Sandbox
composer-search = /{ $pattern }  { $place } von { $count }
composer-filter = nur { $filter }
composer-unstored = nicht gespeichert
composer-read-only = nur lesend
composer-queued = { $count } wartend
composer-waiting = wartet auf dich
composer-retry = neuer Versuch in { $time }
composer-retrying = { $because }; neuer Versuch in { $time } ({ $attempt } von { $of })
composer-connecting = verbinde mit { $peer }
composer-first-word = warte auf das erste Wort
composer-silent = still seit { $time }
composer-working = arbeitet

## Einstellungen, die nicht gelten können

problem-language = ui.language: die Sprache „{ $language }“ gibt es nicht; es gibt { $known } und Dateien in { $folder }
