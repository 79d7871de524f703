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

## Zahlen
#
# NUMBER setzt den Punkt zwischen Tausender; `$count` allein wählt die Form.

figure-decimal = ,
figure-group = .
count-lines = { $count ->
    [one] { NUMBER($count) } Zeile
   *[other] { NUMBER($count) } Zeilen
}
count-signs = { $count ->
    [one] { NUMBER($count) } Zeichen
   *[other] { NUMBER($count) } Zeichen
}
count-questions = { $count ->
    [one] { NUMBER($count) } Frage
   *[other] { NUMBER($count) } Fragen
}
count-changes = { $count ->
    [one] { NUMBER($count) } Änderung
   *[other] { NUMBER($count) } Änderungen
}
count-matches = { $count ->
    [one] { NUMBER($count) } Treffer
   *[other] { NUMBER($count) } Treffer
}
count-chunks = { $count ->
    [one] { NUMBER($count) } Stelle
   *[other] { NUMBER($count) } Stellen
}
count-files = { $count ->
    [one] { NUMBER($count) } Datei
   *[other] { NUMBER($count) } Dateien
}
count-entries = { $count ->
    [one] { NUMBER($count) } Eintrag
   *[other] { NUMBER($count) } Einträge
}
count-problems = { $count ->
    [one] { NUMBER($count) } Problem
   *[other] { NUMBER($count) } Probleme
}
count-failed-checkers = { $count ->
    [one] { NUMBER($count) } Prüfung gescheitert
   *[other] { NUMBER($count) } Prüfungen gescheitert
}
count-results = { $count ->
    [one] { NUMBER($count) } Ergebnis
   *[other] { NUMBER($count) } Ergebnisse
}
count-calls = { $count ->
    [one] { NUMBER($count) } Aufruf
   *[other] { NUMBER($count) } Aufrufe
}
count-items = { $count ->
    [one] { NUMBER($count) } Element
   *[other] { NUMBER($count) } Elemente
}
count-members = { $count ->
    [one] { NUMBER($count) } Feld
   *[other] { NUMBER($count) } Felder
}

## Einstellungen, die nicht gelten können

problem-language = ui.language: die Sprache „{ $language }“ gibt es nicht; es gibt { $known } und Dateien in { $folder }
