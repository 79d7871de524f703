# Deutsche Texte der Oberfläche. Fehlende Texte erscheinen auf Englisch; ein Test meldet sie.

## Die Linie über dem Entwurf

composer-placeholder = Frag etwas.  / Befehle  @ Dateien  ! Shell  ? Tasten
composer-in-review = Tasten gehen an das Review.  esc führt hierher zurück
composer-on-page = Tasten gehen an die Seite darüber.  esc führt hierher zurück
composer-on-list = Tasten gehen an die Liste darüber.  esc führt hierher zurück
composer-on-field = Tasten gehen an das Feld darüber.  esc führt hierher zurück
composer-on-message = Tasten gehen an die Commit-Nachricht.  esc führt hierher zurück
composer-on-question = Tasten gehen an die Frage.  tab führt hierher zurück
composer-on-approval = Tasten gehen an die Freigabe.  tab führt hierher zurück
composer-on-plan = Tasten gehen an den Plan.  tab führt hierher zurück
composer-on-transcript = Tasten gehen an das Gespräch.  tab führt hierher zurück
welcome-other-keys = Auch Schlüssel für { $names } gefunden. /model wechselt; dauerhaft: sheaf config set provider NAME
composer-rest = { $count ->
    [one] noch 1 Zeile ↓
   *[other] noch { $count } Zeilen ↓
}
composer-rest-above = { $count ->
    [one] noch 1 Zeile ↑
   *[other] noch { $count } Zeilen ↑
}
composer-unseen = { $count } neu ↓
composer-shell = läuft in der Sandbox
composer-shell-silent = läuft in der Sandbox, das Modell sieht es nicht
composer-search = /{ $pattern }  { $place } von { $count }
composer-filter = nur { $filter }
composer-unstored = nicht gespeichert
composer-agent-asks = agent, fragt zuerst
composer-next-mode = · danach: { $mode }
composer-restricted-mode = { $mode } → nur lesend
composer-read-only = nur lesend
composer-queued = { $count } eingereiht
composer-waiting = wartet auf dich
composer-retry = neuer Versuch in { $time }
composer-retrying = { $because } · { $attempt } von { $of }
composer-connecting = verbinde mit { $peer }
composer-asking-models = frage { $peer } nach seinen Modellen
composer-first-word = warte auf das Modell
composer-silent = seit { $time } keine Daten
phase-thinking = denkt nach
phase-writing = schreibt
phase-writing-file = schreibt { $file }
phase-checking = prüfe die Änderungen
phase-running = führt aus: { $what }
phase-todo = { $place } von { $count } · { $todo }

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
count-places = { $count ->
    [one] { NUMBER($count) } Stelle
   *[other] { NUMBER($count) } Stellen
}
count-problems = { $count ->
    [one] { NUMBER($count) } Problem
   *[other] { NUMBER($count) } Probleme
}
count-failed-checkers = { $count ->
    [one] { NUMBER($count) } Prüfung fehlgeschlagen
   *[other] { NUMBER($count) } Prüfungen fehlgeschlagen
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

## Schlichte Zeilen: Freigabe

plain-to-the-letter = genauer Text:

## Dokumente

key-send = senden
key-back = zurück
key-confirm = bestätigen
key-retry = nochmal
key-tab-build = tab, b, enter
key-tab-retry = tab, r, enter
key-waiting-build = w, b, enter
key-end-retry = G, r, enter
key-mark-build = b, enter
key-mark-edit = e, enter
key-mark-remove = D, enter
key-mark-retry = r, enter
key-review = prüfen
receipt-tests = Tests
document-broken-off = unvollständig
document-cut = gekürzt
document-hidden = … noch { $size }; y kopiert alles
document-read-only = nur lesend
document-undone = rückgängig
document-undone-partly = teils rückgängig
document-unknown = unbekannte Art
value-more = … weitere

## Denken, Code und Zitate

thinking-word = denkt
thinking-over = nachgedacht
thinking-took = { $time } nachgedacht
code-word = Code
code-new = neu
code-example = Beispiel
code-suggestion = Vorschlag
citation-no-file = Datei fehlt
citation-differs = Datei weicht ab

## Änderungen an Dateien
#
# Die Spalte der Vorgänge ist sechs breit; nur was selten ist, darf länger sein.

edit-create = neu
edit-edit = ändern
edit-delete = löschen
edit-rename = bewegen
edit-writing = schreibt
edit-pending = wartet
edit-applied = angewandt
edit-rejected = abgelehnt
edit-failed = Fehler
edit-nothing = keine Änderungen
edit-checking = prüft
edit-checked = geprüft
edit-not-checked = nicht geprüft
edit-partly-checked = teils geprüft
edit-unchecked = nicht geprüft: { $why }
edit-problems = { $count ->
    [one] 1 neues Problem
   *[other] { $count } neue Probleme
}
edit-fixed = { $count ->
    [one] 1 Problem behoben
   *[other] { $count } Probleme behoben
}
edit-older = { $count ->
    [one] 1 Problem, vielleicht älter
   *[other] { $count } Probleme, vielleicht älter
}
edit-open = { $count ->
    [one] 1 Problem übrig
   *[other] { $count } Probleme übrig
}
edit-more-problems = { $count ->
    [one] … noch 1
   *[other] … noch { $count }
}
edit-empty = leere Datei
edit-cell = Zelle { $number }
edit-new-cell = neue Zelle { $number }
edit-hunk = { $place } von { $count }
edit-no-newline = kein Zeilenende am Schluss
edit-line = @ Zeile { $line }
edit-further = @ weitere Änderung

## Aufrufe von Tools und Befehle

call-no-json = die Argumente sind kein gültiges JSON:
call-failed = Fehler
call-no-result = kein Ergebnis
call-step = Schritt { $number }
call-step-of = Schritt { $number } von { $total }
call-in = { $what } in { $place }
call-search-in = { $what }  in { $place }
call-changed-files = geänderte Dateien
call-keeping = behält „{ $what }“
call-without-result = ohne das Ergebnis von { $what }
call-last-lines = { $count ->
    [one] letzte { NUMBER($count) } Zeile
   *[other] letzte { NUMBER($count) } Zeilen
}
call-from-line = ab { $line }
call-unchecked = nicht geprüft
call-clean = sauber
call-compacted = { $before } → { $after } Token
call-exit = Exit { $code }
call-still-running = läuft noch
command-running = läuft
command-background = Hintergrund
command-ended = beendet
command-timed-out = Zeitlimit
command-rejected = abgelehnt
command-stopped = angehalten
command-folder = in { $folder }
command-network = Netz
command-no-network = kein Netz
command-no-sandbox = ohne Sandbox

## Pläne und ihre Todos

plan-word = Plan
plan-superseded = überholt
plan-untitled = ohne Titel
plan-key-build = umsetzen
plan-key-edit = ändern
plan-key-save = speichern
plan-key-comment = Kommentar
plan-key-todos = Todos
plan-key-tick = abhaken
plan-key-reword = ändern
plan-key-insert = einfügen
plan-key-remove = löschen
plan-key-move = schieben
todo-word = Todo
todo-after = nach { $places }
todo-progress = { $done } von { $count } erledigt
todo-unchanged = keine Änderungen

## Sätze des Agenten

agent-no-git = git ist nicht installiert
agent-no-repository = Dieser Ordner liegt in keinem git-Repository.
agent-conflicts = Es gibt ungelöste Konflikte. Löse sie zuerst.
agent-unfinished = { $name } ist nicht beendet. Schließe es zuerst ab, oder brich es ab.
agent-no-name = git kennt deinen Namen nicht: git config --global user.name und user.email
agent-none-fits = Keine der angenommenen Änderungen kann committet werden.
agent-committed-already = Die angenommenen Änderungen sind schon committet.
agent-changed-meanwhile = Das Repository hat sich inzwischen geändert. Sieh die Änderungen noch einmal an.
agent-filtered = Ein Filter dieses Repositorys lässt sich nicht abschalten. Nimm git diff.
agent-tools-changed = Cache verloren: Werkzeuge geändert: { $name }
agent-undo-busy = solange das Modell arbeitet, geht nichts rückgängig
agent-no-workspace = hier ist kein Arbeitsordner
agent-no-change = keine Änderung einer Datei
agent-any-host = jeden Server
agent-no-call = kein Aufruf zum Wiederholen
agent-stays-here = es läuft noch: das Gespräch geht hier weiter
agent-message-waits = die Nachricht geht ab, sobald die Frage beantwortet ist
agent-marks-left = Instrumentierung ist noch im Code: { $name }

## Vertrauen

trust-review = Details
trust-asked = Diesem Ordner vertrauen? Bis dahin aus: { $files }
trust-changed-asked = Den Änderungen vertrauen? Bis dahin aus: { $files }
trust-more = { $count } weitere
trust-checkers = Prüfprogramme
trust-title = Diesem Ordner vertrauen?
trust-changed-title = Den Änderungen vertrauen?
trust-title-held = Diesem Ordner wird vertraut
trust-about = Seine Regeln und Prüfprogramme sind aus. Vertrauen schaltet ein:
trust-about-changed = Neue und geänderte Dateien sind aus. Vertrauen schaltet ein:
trust-about-held = Eingeschaltet ist:
trust-settings = Einstellungen, ab dem nächsten Start
trust-command = ein Prompt, gesendet, wenn du seinen Namen tippst
trust-mode = ein Modus für die Auswahl mit Umschalt+Tab
trust-hooks = Programme, die an festen Stellen laufen, in der Sandbox
trust-skill = Anweisungen, die das Modell für eine Aufgabe laden kann
trust-servers = MCP-Server; jeder fragt, bevor er startet
trust-rule-always = eine Regel, mit jeder Nachricht gesendet
trust-rule-files = eine Regel, mit passenden Dateien gesendet
trust-rule-model = eine Regel, gesendet, wenn das Modell fragt
trust-rule-user = eine Regel, gesendet, wenn du sie nennst
trust-checkers-about = Prüfprogramme, in der Sandbox (sie führen Build-Skripte des Projekts aus)
trust-changed = geändert
trust-limits = Vertraute Dateien weisen das Modell an. Schlüssel, Anbieter, Proxys, Rechte und Sandbox setzen sie nie.
trust-later = Nicht jetzt; fragen nach Änderung
trust-yes = Vertrauen bis zur Änderung
trust-keep = Weiter vertrauen
trust-stop = Nicht mehr vertrauen, ab der nächsten Nachricht
trust-nothing = nichts in diesem Ordner braucht dein Vertrauen
trust-unsaved = nicht gespeichert: { $why }

## Fragen und Freigaben

question-answered = beantwortet
question-skipped = übersprungen
question-cancelled = angehalten
question-waiting = wartet
question-unanswered = unbeantwortet
question-answer = Antwort:
question-other = anderes:
question-more-other = , anderes:
question-type = Antwort eingeben
question-type-other = Andere Antwort eingeben
question-skip = Überspringen
question-skip-all = Alle Fragen überspringen
question-key-answer = antworten…
question-key-skip = überspringen
question-key-next = weiter
question-key-previous = zurück
question-key-toggle = ankreuzen
question-key-later = später
approval-allow = erlauben
approval-create = anlegen:
approval-edit = ändern:
approval-delete = löschen:
approval-rename = umbenennen:
approval-mode = in den Modus { $mode } wechseln
approval-needs = braucht
approval-needs-names = braucht { $names }
permission-network = Netz
permission-git-write = Schreibzugriff auf git
permission-all = vollen Zugriff
approval-together = Änderung { $at } von { $count } in einem Schritt: Wer eine ablehnt, lehnt alle ab
approval-why = Grund
approval-folder = im Ordner
approval-reach = erreicht
approval-write = schreibt
approval-rule = immer sichert
approval-because = weil
approval-protected = geschützt
approval-allowed-once = einmal erlaubt
approval-allowed-session = für die Sitzung erlaubt
approval-allowed-always = immer erlaubt
approval-rejected = abgelehnt
approval-rejected-always = immer abgelehnt
approval-hunks = { $made } von { $count } Stellen erlaubt
approval-hunk = Stelle { $index }
approval-key-once = einmal
approval-key-session = für diese Sitzung
approval-key-always = immer
approval-key-no = nein
approval-key-more = mehr
approval-key-no-because = nein, weil…
approval-no-because = nein, weil:

## Ende einer Antwort

ending-stopped = angehalten
ending-empty = die Antwort ist leer
ending-requests = angehalten: Höchstzahl der Anfragen für eine Runde erreicht; mit „weiter“ geht es weiter
ending-length = die Antwort hat die Höchstlänge des Modells erreicht; mit „weiter“ geht es weiter
ending-refused = das Modell lehnt es ab, weiterzumachen
ending-failed = die Antwort ist fehlgeschlagen
ending-broke-off = Verbindung verloren, Teilantwort bleibt erhalten
ending-other = beendet: { $word }

## Was du neben dem Gespräch getan hast, und wie man es rückgängig macht

done-undid = Änderungen an { $files } rückgängig gemacht · /redo
done-redid = Änderungen an { $files } wiederholt · /undo
done-undid-document = { $address } { $file } rückgängig gemacht · /redo { $address }
done-redid-document = { $address } { $file } wiederholt · /undo { $address }
done-finished-undo = unterbrochenes Rückgängigmachen abgeschlossen: { $files } · /redo
done-finished-redo = unterbrochenes Wiederholen abgeschlossen: { $files } · /undo
undo-finished = { $count ->
    [one] Unterbrochenes Rückgängigmachen abgeschlossen: 1 Datei
   *[other] Unterbrochenes Rückgängigmachen abgeschlossen: { $count } Dateien
}
redo-finished = { $count ->
    [one] Unterbrochenes Wiederholen abgeschlossen: 1 Datei
   *[other] Unterbrochenes Wiederholen abgeschlossen: { $count } Dateien
}
undo-finished-other = { $count ->
    [one] Unterbrochenes Rückgängigmachen eines anderen Gesprächs abgeschlossen: 1 Datei
   *[other] Unterbrochenes Rückgängigmachen eines anderen Gesprächs abgeschlossen: { $count } Dateien
}
undo-unfinished-other = Ein unterbrochenes Rückgängigmachen eines anderen Gesprächs kann nicht abgeschlossen werden
undo-unchanged = nicht geändert, weil später bearbeitet: { $files }
undo-is-cut = ein Rückgängigmachen wurde unterbrochen; `sheaf undo` schließt es ab
done-unchanged = unverändert: { $what }
done-branched = weiter nach { $address } · /branches für den Rest
done-branched-start = weiter von vorn · /branches zeigt das Verlassene
done-mode = diese Antwort geht im Modus { $mode } weiter · shift+tab
done-trusted = diesem Ordner vertraut · /trust zum Ändern
done-distrusted = vertraut diesem Ordner nicht mehr · /trust zum Ändern
done-trust-passed = Regeln dieses Ordners bleiben aus · /trust zum Ändern
done-allowed = immer erlaubt: { $rules }, in deinen Einstellungen · /permissions
done-exported = exportiert nach { $file } · zum Rückgängigmachen löschen
done-exported-over = exportiert nach { $file }, anstelle der früheren Datei
done-saved = gespeichert in { $file } · zum Rückgängigmachen löschen
done-saved-over = gespeichert in { $file }, anstelle der früheren Datei
done-committed = Commit { $commit } · { $back }
done-remembered = gemerkt in { $place } · Zeile löschen macht es rückgängig
done-set = { $name } in { $place } geschrieben · { $command }
done-unset = { $name } aus { $place } entfernt · { $command }

## Fehler und nächste Schritte

error-word = Fehler
error-without-message = fehlgeschlagen, ohne zu sagen, warum
reason-file-not-found = Datei nicht gefunden
reason-file-exists = die Datei gibt es schon
reason-permission-denied = Zugriff verweigert
reason-path-outside-workspace = außerhalb des Workspace
reason-ignored-file = verborgen: ein Geheimnis, oder in einer Ignore-Datei
reason-edit-no-match = der zu ersetzende Text steht nicht in der Datei
reason-edit-ambiguous = der zu ersetzende Text kommt mehrmals vor
reason-edit-stale = das Modell muss diesen Teil der Datei erst lesen
reason-command-failed-to-start = nicht gestartet
reason-command-timeout = Zeit überschritten
reason-tool-unknown = dieses Werkzeug gibt es nicht
reason-tool-arguments-invalid = ungültige Argumente
reason-tool-forbidden-in-mode = in diesem Modus nicht erlaubt
reason-workspace-untrusted = diesem Ordner wird nicht vertraut: /trust
reason-tool-not-offered = diesem Modell nicht angeboten
reason-tool-rejected = abgelehnt
reason-cancelled = angehalten
error-step-file-not-found = Prüfe den Pfad.
error-step-file-exists = Wähle einen anderen Namen oder lass die vorhandene Datei ändern.
error-step-permission-denied = Prüfe die Zugriffsrechte der Datei.
error-step-path-outside-workspace = Starte sheaf mit --add-dir und dem Ordner der Datei.
error-step-ignored-file = Eine Ignore-Datei verbirgt sie vor dem Modell. Ändere diese, um sie freizugeben.
error-step-edit-no-match = Die Datei hat sich geändert, seit das Modell sie gelesen hat.
error-step-edit-ambiguous = Verlange eine Änderung mit mehr Zeilen rundherum.
error-step-edit-stale = Das Modell muss die Datei neu lesen.
error-step-command-failed-to-start = Prüfe, ob das Programm installiert ist und im PATH liegt.
error-step-command-timeout = Lass es im Hintergrund oder mit längerem Zeitlimit laufen.
error-step-tool-unknown = Das Modell hat ein unbekanntes Tool aufgerufen. Es versucht es noch einmal.
error-step-tool-arguments-invalid = Das Modell hat ungültige Argumente geschickt. Es versucht es noch einmal.
error-step-tool-forbidden-in-mode = shift+tab wechselt den Modus.
error-step-tool-failed = Das Modell hat diesen Fehler gesehen.
error-step-llm-auth = Prüfe den Schlüssel des Anbieters. sheaf doctor zeigt, welcher benutzt wird.
error-step-llm-rate-limited = Warte kurz und versuche es noch einmal.
error-step-llm-overloaded = Der Anbieter ist überlastet.
error-step-llm-context-length = Beginne ein neues Gespräch oder wähle ein Modell mit größerem Fenster.
error-step-llm-refusal = Formuliere die Anfrage anders.
error-step-llm-bad-response = Der Anbieter hat eine ungültige Antwort geschickt.
error-step-llm-unavailable = Läuft der Server des Modells? sheaf doctor prüft es.
error-step-stream-interrupted = Die Teilantwort bleibt erhalten.
error-step-stream-protocol = Der Server hat keinen Dokumentenstrom geschickt. Prüfe seine Adresse.
error-step-unauthorized = Prüfe das Token des Gateways (SHEAF_TOKEN). sheaf doctor zeigt, welches benutzt wird.
error-step-rate-limited = Warte kurz und versuche es noch einmal.
error-step-max-turns = Mit „weiter“ geht es weiter.

## Die Kopfzeile

header-tokens = { $count } Token
header-sandbox-full = volle Sandbox
header-sandbox-partial = Sandbox teilweise
header-sandbox-partial-but = Sandbox teilweise ({ $but })
header-sandbox-none = OHNE SANDBOX

## Filter, Suche, Erwähnungen und Warteschlange

filter-everything = alles
filter-text = Text
filter-edits = Dateiänderungen
filter-commands = Befehle
filter-calls = andere Tool-Aufrufe
filter-code = Code und Zitate
filter-plans = Pläne und Todos
filter-questions = Fragen und Freigaben
filter-errors = Fehler
filter-failed = Fehler und was fehlgeschlagen ist
filter-waiting = Fragen, die auf dich warten
filter-running = läuft noch
filter-nothing = keine Treffer für { $filter }; esc zeigt alles
search-first = zuerst suchen, mit /
search-from-beginning = weiter vom Anfang
search-from-end = weiter vom Ende
search-nothing = kein Treffer für „{ $pattern }“
mention-documents = Dokumente
mention-files = Dateien
mention-files-and-code = Dateien, Funktionen und Typen
image-sized = Bild { $size } { $kind }, { $bytes }
image-unsized = Bild { $kind }, { $bytes }
queue-next = gleich
queue-queued = danach
queue-more = (und { $count } mehr)
inline-earlier = … früher: /print zeigt alles
view-too-small = sheaf: Terminal zu klein

## Hinweise des Terminals

attention-finished = sheaf ist fertig: { $about }
attention-asks = sheaf hat eine Frage: { $about }

## Das Gespräch in Zeilen (--plain)
#
# Was getippt wird, bleibt: Buchstaben, Zahlen, s, enter, up, down, tab, Befehle.

plain-trust = { $question }. /trust zeigt mehr.
plain-note = Hinweis: { $text }
plain-begin = sheaf { $version }, { $who }, in { $folder }
plain-earlier = { $count ->
    [one] { $count } frühere Runde; /print gibt sie ganz aus, eine Zeile wie { $example } ein Dokument
   *[other] { $count } frühere Runden; /print gibt sie ganz aus, eine Zeile wie { $example } ein Dokument
}
plain-other = zu einem anderen Gespräch gewechselt, { $who }
plain-editor = ein Editor braucht das Terminal; starte sheaf dafür ohne --plain
plain-branch = weiter von einer früheren Stelle; Späteres liegt auf einem anderen Branch, siehe /branches
plain-plan-waits = der Plan wartet: /build setzt ihn um, anderer Text verlangt Änderungen
plain-your-turn = du bist dran, Modus { $mode }
plain-input-ended = die Eingabe endete vor der Antwort
plain-pasted = { $count ->
    [one] { NUMBER($count) } Zeile eingefügt; tippe eine letzte Zeile, oder enter sendet sie so
   *[other] { NUMBER($count) } Zeilen eingefügt; tippe eine letzte Zeile, oder enter sendet sie so
}
plain-turn = Runde { $address }
plain-message = { $address } Nachricht
plain-waiting = { $label }, wartet
plain-working = arbeitet, { $seconds } s
plain-working-on = arbeitet, { $seconds } s, { $what }
plain-entries = die Liste hat { $count } Einträge
plain-hunks = { $accepted } von { $count } Stellen angenommen, { $rejected } abgelehnt; /review macht weiter, n lehnt alle ab
plain-letters = tippe y, n oder einen anderen der Buchstaben
plain-how-keys = jeder Buchstabe ist eine Taste; enter, up, down und tab sind Wörter; eine leere Zeile schließt
plain-how-picker = tippe eine Zahl; anderer Text filtert die Liste; eine leere Zeile schließt sie
plain-how-commit = enter committet; anderer Text wird die Nachricht
plain-how-prompt = tippe den Text; eine leere Zeile schließt
plain-how-answer = tippe deine Antwort; s überspringt
plain-how-number = tippe eine Zahl; s überspringt
plain-how-number-or-words = tippe eine Zahl oder eine eigene Antwort; s überspringt
plain-how-numbers = tippe eine oder mehrere Zahlen; s überspringt
plain-how-numbers-or-words = tippe eine oder mehrere Zahlen oder eine eigene Antwort; s überspringt
plain-number-to = tippe eine Zahl von 1 bis { $count }; s überspringt
plain-options = die Möglichkeiten sind 1 bis { $count }
plain-only-one = wähle nur eine
plain-question = Frage: { $text }
plain-question-of = Frage { $place } von { $count }: { $text }
plain-word-always = immer
plain-word-no = nein
plain-word-yes = ja
plain-yes-once = ja, einmal
plain-yes-session = ja, für diese Sitzung
plain-yes-always = ja, immer
plain-no = nein, auf Wunsch mit Grund
plain-kind-text = Text
plain-kind-code-reference = Codestelle
plain-kind-code-block = Codeblock
plain-kind-file-edit = Dateiänderung
plain-kind-tool-call = Tool
plain-kind-terminal-command = Befehl
plain-kind-plan = Plan
plain-kind-approval = Erlaubnis
plain-kind-question = Frage
plain-kind-error = Fehler
plain-kind-todo-update = Todos
plain-sign-ok = ok
plain-sign-failed = fehlgeschlagen
plain-sign-running = läuft
plain-sign-done = erledigt:
plain-sign-open = offen:

## Ungültige Einstellungen

problem-language = ui.language: unbekannte Sprache „{ $language }“; es gibt { $known } und Dateien in { $folder }

## Aktionen

# `hint-` sind ein bis drei Wörter für Fußzeile und Palette, `about-` ist eine Zeile für Hilfe und Palette; dahinter der Name
# der Aktion, ein Bindestrich für jeden Punkt. Was in Backquotes steht, wird so getippt.

hint-branches = Branches
about-branches = Branches dieses Gesprächs zeigen und zu einem wechseln
hint-branch = hier abzweigen
about-branch = nach dem gewählten Dokument auf einem neuen Branch weitermachen: `/branch 7.3`
hint-reword = umformulieren
about-reword = eine Nachricht ändern und auf einem neuen Branch senden: `/reword 7`
hint-again = noch einmal
about-again = die letzte Antwort wiederholen, oder einen Aufruf oder eine Frage: `/again 7.3`
hint-conversation-new = neu
about-conversation-new = ein neues Gespräch beginnen; dieses ist gespeichert
hint-conversation-clear = neu
about-conversation-clear = dasselbe wie /new
hint-conversation-resume = fortsetzen
about-conversation-resume = ein gespeichertes Gespräch fortsetzen
hint-conversation-export = exportieren
about-conversation-export = das Gespräch in eine Datei exportieren: `/export talk.html`, `.md`, `.json` oder `.jsonl`
hint-conversation-cost = Kosten
about-conversation-cost = Token, Zeit und Kosten jeder Runde zeigen
hint-conversation-compact = verdichten
about-conversation-compact = das Gespräch zusammenfassen, um Kontext frei zu machen: `/compact API-Entscheidungen behalten`
hint-conversation-rename = umbenennen
about-conversation-rename = dieses Gespräch umbenennen (schaltet automatische Titel ab): `/rename Rabattcodes`
hint-conversation-drop = weglassen
about-conversation-drop = ein Tool-Ergebnis aus dem Kontext nehmen; lesbar bleibt es: `/drop 7.3`
hint-copy = kopieren
about-copy = ein Dokument oder die letzte Antwort kopieren: `/copy`, `/copy markdown|plain|code`, `all`, `7.3`
hint-print = ausgeben
about-print = das Gespräch in den Scrollback des Terminals schreiben, wo es bleibt
hint-copy-code = Code kopieren
about-copy-code = nur den Code des Dokuments kopieren
hint-copy-as = kopieren als
about-copy-as = als Markdown, Text oder nur Code kopieren; ein Dokument oder alles Sichtbare
hint-mode-next = Modus
about-mode-next = zum nächsten Modus wechseln: agent, agent, der zuerst fragt, plan, ask, debug
hint-mode = Modus
about-mode = einen Modus wählen, oder `/mode plan`
hint-model = Modell
about-model = das Modell wählen, oder `/model NAME`
hint-effort = Aufwand
about-effort = einstellen, wie gründlich das Modell denkt: `/effort high`, `medium`, `low`, `off`, `auto`
hint-theme = Farben
about-theme = ein Farbschema wählen, oder `/theme NAME`
hint-palette = Palette
about-palette = alle Befehle durchsuchen
hint-mouse = Maus
about-mouse = `/mouse full` wählt aus, `wheel` scrollt nur, `off`: Das Terminal übernimmt die Maus
hint-problems = Probleme
about-problems = Probleme im Code dieses Gesprächs und in den Einstellungen zeigen
hint-todo = Todo
about-todo = die aktuelle Todo-Liste zeigen
hint-context = Kontext
about-context = zeigen, was im Kontext ist und wie viele Token jeder Teil braucht
hint-inspect = Inspektor
about-inspect = die Rohdaten des Servers neben den Dokumenten zeigen, die daraus entstanden
hint-trust = Vertrauen
about-trust = prüfen, ob du diesem Ordner vertraust
hint-sandbox = Sandbox
about-sandbox = die Sandbox zeigen; `guard` und `strict` regeln, wie eine lückenhafte Dateien schützt
hint-permissions = Rechte
about-permissions = Regeln für Freigaben zeigen; `reset` widerruft, was du für diese Sitzung erlaubt hast
hint-help = Tasten
about-help = dasselbe wie /keys
hint-keys = Tasten
about-keys = alle Tasten und Befehle zeigen; ? nur bei leerem Entwurf
hint-focus = Verlauf
about-focus = zur wartenden Frage, zum Verlauf oder zur Eingabe; während einer Antwort: Entwurf anstellen
hint-escape = stoppen
about-escape = schließen, Suche oder Filter beenden, Antwort stoppen; zweimal bei leerem Entwurf: zurückgehen
hint-interrupt = stoppen
about-interrupt = Auswahl kopieren, Antwort stoppen oder Entwurf leeren; zweimal beendet
hint-leave = beenden
about-leave = bei leerem Entwurf beenden; sonst das nächste Zeichen löschen
hint-quit = beenden
about-quit = beenden
hint-suspend = anhalten
about-suspend = zur Shell wechseln; `fg` kehrt zurück
hint-redraw = neu zeichnen
about-redraw = den Bildschirm neu zeichnen
hint-panic = Panik
about-panic = abstürzen, um die Rückgabe des Terminals zu testen (nur mit SHEAF_DEV=1)
hint-search = suchen
about-search = das Gespräch durchsuchen; Kleinbuchstaben finden beide
hint-search-next = nächster Treffer
about-search-next = zum nächsten Treffer
hint-search-previous = voriger Treffer
about-search-previous = zum vorigen Treffer
hint-filter = Filter
about-filter = nur Änderungen, Befehle, Fehler … zeigen: `/filter failed path:src/** Wörter`; esc zeigt alles
hint-outline = Gliederung
about-outline = alle Nachrichten und Dokumente auflisten
hint-times = Zeiten
about-times = zeigen, wann jedes Dokument begann und wie lange es dauerte
hint-allow-once = einmal erlauben
about-allow-once = erlauben, was auf Freigabe wartet, einmal
hint-allow-session = für diese Sitzung erlauben
about-allow-session = erlauben, was auf Freigabe wartet, für diese Sitzung
hint-reject = ablehnen
about-reject = ablehnen, was auf Freigabe wartet
hint-plan-mark = umsetzen
about-plan-mark = den Plan vormerken; Enter setzt ihn um
hint-plan-build = umsetzen
about-plan-build = in den Modus agent wechseln und den Plan umsetzen
hint-plan-save = speichern
about-plan-save = den Plan in .cursor/plans speichern
hint-plan-comment = Kommentar
about-plan-comment = Änderungen verlangen und weiterplanen
hint-plan-edit = ändern
about-plan-edit = den Plan vormerken; Enter öffnet ihn mit seinen Todos in $VISUAL oder $EDITOR
hint-todo-next = Todo
about-todo-next = zum nächsten Todo, dann zum nächsten Dokument
hint-todo-previous = Todo
about-todo-previous = zum vorigen Todo, dann zum vorigen Dokument
hint-todo-toggle = abhaken
about-todo-toggle = das Todo abhaken oder wieder öffnen
hint-todo-remove = löschen
about-todo-remove = das Todo vormerken; Enter löscht es aus dem Plan
hint-todo-down = runter
about-todo-down = das Todo nach unten schieben
hint-todo-up = hoch
about-todo-up = das Todo nach oben schieben
hint-todo-insert = einfügen
about-todo-insert = ein Todo nach diesem einfügen
hint-todo-reword = ändern
about-todo-reword = das Todo ändern; auf dem Plan selbst: einklappen
hint-next = nächstes
about-next = zum nächsten Dokument
hint-previous = voriges
about-previous = zum vorigen Dokument
hint-turn-next = nächste Runde
about-turn-next = zu deiner nächsten Nachricht
hint-turn-previous = vorige Runde
about-turn-previous = zu deiner vorigen Nachricht
hint-next-edit = nächste Änderung
about-next-edit = zur nächsten Dateiänderung
hint-previous-edit = vorige Änderung
about-previous-edit = zur vorigen Dateiänderung
hint-next-error = nächster Fehler
about-next-error = zum nächsten Fehler, fehlgeschlagenen Aufruf oder Befehl
hint-previous-error = voriger Fehler
about-previous-error = zum vorigen Fehler, fehlgeschlagenen Aufruf oder Befehl
hint-next-question = nächste Frage
about-next-question = zur wartenden Frage oder zum wartenden Plan
hint-line-up = hoch
about-line-up = eine Zeile nach oben scrollen
hint-line-down = runter
about-line-down = eine Zeile nach unten scrollen
hint-page-up = Seite hoch
about-page-up = eine Seite nach oben scrollen
hint-page-down = Seite runter
about-page-down = eine Seite nach unten scrollen
hint-top = Anfang
about-top = zum Anfang des Gesprächs
hint-bottom = Ende
about-bottom = ans Ende gehen und neuer Ausgabe folgen
hint-context-more = mehr Umgebung
about-context-more = mehr unveränderte Zeilen um jede Änderung zeigen
hint-context-less = weniger Umgebung
about-context-less = weniger unveränderte Zeilen um jede Änderung zeigen
hint-fold = klappen
about-fold = das Dokument ein- oder ausklappen
hint-fold-all = alle klappen
about-fold-all = jedes Dokument auf eine Zeile einklappen oder die übliche Ansicht herstellen
hint-fold-kind = Art klappen
about-fold-kind = alle Dokumente dieser Art ein- oder ausklappen
hint-reasoning = Gedanken
about-reasoning = die Überlegungen des Modells zeigen oder einklappen
hint-open = öffnen
about-open = die Datei des Dokuments vormerken; Enter öffnet sie in $VISUAL oder $EDITOR
hint-commit = committen
about-commit = die angenommenen Änderungen in git committen, mit einer Nachricht zum Ändern
hint-config = Einstellungen
about-config = alle Einstellungen zeigen und an Ort und Stelle ändern
hint-memory = merken
about-memory = eine Zeile merken, oder die Regeldateien zeigen: `/memory Tabs statt Blanks`
hint-status = Status
about-status = Server, Modell, Herkunft des Schlüssels, Grenzen und Kosten zeigen
about-skills = Skills mit ihren Tokenkosten zeigen, und warum manche nicht wirken
hint-skills = Skills
about-hooks = Hooks zeigen, und warum manche nicht wirken
hint-hooks = Hooks
hint-usage = Verbrauch
about-usage = zeigen, was diese Runde und Sitzung kosten, und die Grenzen des Servers
init-message = AGENTS.md schreiben
hint-init = Regeln schreiben
about-init = das Projekt erkunden und seine AGENTS.md schreiben oder verbessern
hint-diff = Änderungen
about-diff = alle Änderungen seit dem letzten Commit zeigen
hint-btw = nebenbei
about-btw = nebenbei etwas fragen, das nicht ins Gespräch kommt: `/btw warum zwei Schleifen?`
hint-review = Review
about-review = die Änderungen einer Runde oder des Gesprächs ansehen und jede annehmen oder ablehnen
hint-act = Review
about-act = auf einer Änderung: Review; auf einem Fehler: vormerken; Enter wiederholt
hint-undo = zurücknehmen
about-undo = Dateiänderungen der letzten Runde rückgängig machen, `/undo 7` einer Runde, `/undo 7.3` eines Dokuments
hint-redo = wiederholen
about-redo = das zuletzt rückgängig Gemachte wiederholen, `/redo 7.3` ein Dokument
hint-undo-this = dies zurücknehmen
about-undo-this = Dateiänderungen des gewählten Dokuments rückgängig machen oder wiederholen
hint-rewind = zurückgehen
about-rewind = zu einer Nachricht zurückgehen: Dateien, Gespräch oder beides: `/rewind 7`
hint-send = senden
about-send = die Nachricht senden oder das arbeitende Modell lenken; `\` davor bricht die Zeile um
hint-queue = einreihen
about-queue = Nachricht einreihen, während das Modell arbeitet; sonst senden
hint-newline = neue Zeile
about-newline = Zeilenumbruch einfügen
hint-clear = leeren
about-clear = den Entwurf leeren; up stellt ihn wieder her
hint-stash = beiseitelegen
about-stash = den Entwurf beiseitelegen oder zurückholen
hint-editor = Editor
about-editor = den Entwurf oder den eingefügten Text am Cursor in $VISUAL oder $EDITOR bearbeiten
hint-history = Gesendetes
about-history = früher gesendete Nachrichten durchsuchen, in jedem Workspace
hint-picture = Bild
about-picture = ein Bild einfügen; auch der Pfad eines Bildes, eingefügt oder hergezogen
hint-unfold = ausklappen
about-unfold = letzten eingeklappten Eintrag aus- oder wieder einklappen; auf Eingefügtem: ansehen
hint-background = Hintergrund
about-background = bei leerem Entwurf: laufenden Befehl in den Hintergrund schicken oder jene auflisten
hint-tasks = Hintergrund
about-tasks = Befehle im Hintergrund auflisten, verfolgen und beenden
hint-queued = Warteschlange
about-queued = eingereihte Nachrichten ändern oder entfernen, oder eine einreihen: `/queue Tests ausführen`
hint-vim = Vim
about-vim = Vim-Bearbeitung von Entwürfen ein- oder ausschalten

## Meldungen nach einer Aktion

action-context-lines = { $count ->
    [one] { NUMBER($count) } Zeile Umgebung
   *[other] { NUMBER($count) } Zeilen Umgebung
}
action-still-coming = das Modell antwortet noch; esc stoppt es
action-no-message = keine Nachricht zum erneuten Senden
action-no-plan-to-build = kein Plan zum Umsetzen
action-no-plan-to-save = kein Plan zum Speichern
action-choose-a-todo = wähle zuerst mit den Pfeiltasten ein Todo
action-newer-plan = es gibt einen neueren Plan; dieser wurde nicht geändert
action-rename-how = gib den neuen Titel an: `/rename Rabattcodes`
action-drop-which = nenne ein Dokument: `/drop 7.3`
action-no-address = { $word } ist keine Adresse wie 7.3
action-nothing-said = noch keine Nachrichten
action-is-new = dieses Gespräch ist schon neu
action-at-work = arbeitet noch; esc stoppt
action-no-document = kein Dokument gewählt; tab geht zum Verlauf
action-no-turn = { $word } ist keine Runde wie 7
action-answering = arbeitet noch; esc stoppt
action-neither-turn-nor-address = { $word } ist weder eine Runde wie 7 noch eine Adresse wie 7.3
action-no-such-document = kein Dokument { $word }
action-redo-how = /redo wiederholt das zuletzt rückgängig Gemachte, /redo 7.3 ein Dokument
action-no-running-command = es läuft kein Befehl
action-no-todo = keine Todo-Liste in diesem Gespräch
action-nothing-folded = nichts ist eingeklappt
action-no-message-waits = keine eingereihten Nachrichten
action-vim-on = Vim-Bearbeitung an; esc für seine Befehle
action-vim-off = Vim-Bearbeitung aus
action-no-command = unbekannter Befehl /{ $word }; ein Leerzeichen vor dem / sendet ihn als Text
action-no-command-near = unbekannter Befehl /{ $word } (meintest du /{ $near }?)
action-run-how = ! führt einen Befehl in der Sandbox aus; !! verbirgt ihn vor dem Modell
action-run-drafted = enter führt den Befehl aus; ein Leerzeichen vor ! sendet ihn als Text
action-not-sent = nicht gesendet: { $peer } schreibt dieses Gespräch; { $command } setzt eine Kopie fort
action-runs-nothing = { $peer } kann deine Befehle nicht ausführen; der Agent von sheaf kann es
action-run-later = arbeitet noch; Befehle gehen nach der Antwort, oder esc stoppt sie
action-again-stands = schon angewendet; zuerst /undo { $address }
action-again-what = nur Aufrufe und Fragen lassen sich wiederholen; /again allein wiederholt die letzte Antwort
action-again-attached = der Server hat eigene Zweige; sende die Nachricht noch einmal
action-which-document = welches Dokument? Tippe seine Nummer (7.3) oder wähle es mit tab
action-not-here = { $word } ist nicht auf diesem Branch
action-makes-no-calls = { $peer } kann keine Aufrufe wiederholen; der Agent von sheaf kann es
action-not-allowed-here = hier lässt es sich nicht erlauben; esc kehrt zur Frage zurück
action-no-file-changed = keine Änderungen für das Review
action-change-whole = nimm diese Änderung ganz an oder lehne sie ab; bearbeiten geht nach dem Schreiben
action-decided-by-hunks = du hast schon über einzelne Stellen entschieden; /review (alt+r) macht weiter
action-others-by-hunks = bei einer anderen Änderung sind Stellen entschieden: y erlaubt nur diese, /review (alt+r) macht weiter
action-answered-meanwhile = schon beantwortet; dein Text ist im Entwurf
action-hunk-unchanged = nicht geändert; die Stelle wartet noch
action-hunk-comment = gewünschte Änderung an dieser Stelle
action-rejected-already = schon abgelehnt
action-redoing = wird zurückgeholt; a nimmt sie dann an
action-never-written = abgelehnt, ehe sie geschrieben war; frag das Modell neu
action-nothing-to-print = nichts auszugeben
action-printed = oben im Scrollback des Terminals ausgegeben
action-copy-how = { $word } lässt sich nicht kopieren; nimm markdown, plain oder code, dazu all oder 7.3
action-no-code = kein Code zum Kopieren
action-nothing-to-copy = nichts zu kopieren
action-no-mode = unbekannter Modus { $word }; nimm einen von { $modes }
action-asking-for-models = lade Modelle …
action-model-chosen = { $model } ab der nächsten Nachricht
action-effort-deaf = { $peer } entscheidet selbst, wie gründlich gedacht wird
action-effort-chosen = Aufwand { $effort } ab der nächsten Nachricht
action-effort-auto = Aufwand wie eingestellt, ab der nächsten Nachricht
action-no-effort = unbekannter Aufwand { $word }; nimm auto, { $known }
action-no-theme = unbekanntes Farbschema { $word }; nimm auto, { $known }
action-no-mouse = unbekannter Mausmodus { $word }; nimm full, wheel oder off
action-mouse-full = Maus full: scrollt, wählt aus und kopiert
action-mouse-wheel = Maus wheel: scrollt nur; Shift wählt wie im Terminal aus
action-mouse-off = Maus off: Das Terminal übernimmt sie
action-no-problems = keine Probleme in den Dateien dieses Gesprächs, auch nicht in den Einstellungen
action-counting = zähle …
action-sandbox-how = nimm /sandbox, /sandbox guard oder /sandbox strict
action-permissions-how = nimm /permissions oder /permissions reset
action-looking = lade …
action-rewind-how = esc noch einmal zum Zurückspulen
transcript-reading-back = … frühere Runden werden gelesen
transcript-reading-back-esc = … frühere Runden werden gelesen; esc bricht ab
news-typed-meanwhile = nicht geöffnet, weil du gerade tippst
news-draft = ctrl+s holt den Entwurf deiner letzten Sitzung zurück
action-stashed = Entwurf beiseitegelegt; ctrl+s holt ihn zurück
action-no-stash = kein Entwurf liegt beiseite
action-no-approval = keine Freigabe wartet
approval-rest = das ist der nächste Teil: erst lesen, dann die Taste noch einmal drücken
approval-unseen = darum geht es: erst lesen, dann die Taste noch einmal drücken
action-quit-how = noch einmal ctrl+c beendet
action-no-panic = unbekannter Befehl /panic
action-nothing-to-read = noch nichts zu lesen
action-no-question = keine Frage wartet
action-select-first = wähle zuerst ein Dokument
action-names-no-file = dieses Dokument nennt keine Datei
action-no-more-below = weiter unten nichts mehr
action-no-more-above = weiter oben nichts mehr
action-from-the-top = weiter am Anfang
action-from-the-bottom = weiter am Ende
action-only-this = das ist das einzige
action-none-of-these = nichts zu zeigen
action-click-again = noch ein Klick öffnet { $path }

## Kopiertes, im Satz

copied-conversation = das Gespräch
copied-last-answer = die letzte Antwort
copied-reasoning = die Gedanken
copied-selection = die Auswahl
copied-what-came = die Rohantwort
copied-curl = die Anfrage als curl
copied-resume = der Befehl zum Fortsetzen in { $folder }
copied-characters = { NUMBER($count) } { $count ->
    [one] Zeichen
   *[other] Zeichen
}

## Einzeilige Eingaben

prompt-new-todo = neues Todo
prompt-todo = Todo
prompt-search = suchen

## Text für den Entwurf

draft-about-plan = Zum Plan „{ $title }“:

## Branches

branches-title = Branches
branches-place = { $at } von { $count }
branches-count = { NUMBER($count) } { $count ->
    [one] Branch
   *[other] Branches
}
branches-there = dort: Runde { $turn }
branches-here = hier: Runde { $turn }
branches-there-rest = dort: der Rest von Runde { $turn }
branches-here-rest = hier: der Rest von Runde { $turn }
branches-rest = der Rest dieser Antwort

## Der Inspektor

inspector-title = Inspektor
inspector-nothing-yet = noch nichts empfangen
inspector-steps = { $count } Schritte
inspector-steps-gone = { $count } Schritte, die ersten { $gone } verworfen
inspector-too-much = die Anfrage hat { $size }, zu groß zum Kopieren
inspector-no-request = keine Anfrage: lokal beantwortet
inspector-body-too-large = Body zu groß zum Aufbewahren
inspector-when = Schritt { $step } · { $clock } · nach { $since }
inspector-when-after = Schritt { $step } · { $clock } · +{ $gap } · nach { $since }
inspector-came = empfangen, { $size }
inspector-came-whole = ganz empfangen, { $size }
inspector-run = { $count } Deltas, { $size }: ihr Text
inspector-made-here = lokal
inspector-more = … noch { $size }
inspector-before = … { $size } darüber
inspector-made-nothing = keine Wirkung
inspector-document = { $kind } { $id }, { $state ->
    [open] offen
   *[ended] beendet
}
inspector-document-incomplete = { $kind } { $id }, { $state ->
    [open] offen
   *[ended] beendet
}, unvollständig

## Die Gliederung

outline-title = Gliederung
outline-place = { $at } von { $count }

## Auswahllisten

list-nothing = keine Treffer
list-chosen-now = aktuell
list-mode = Modus
list-effort = Aufwand
prompt-export = Exportieren nach
export-elsewhere = anderer Name
export-about-elsewhere = { $path } behalten
export-overwrite = überschreiben
export-about-overwrite = die Datei ersetzen
save-about-replace = { $path } ersetzen, die anders ist; esc behält sie
list-export-exists = die Datei existiert
list-in-use = aktiv
model-has-effort = Denkstärke
list-model-more = sheaf login ergänzt Anbieter, ab dem nächsten Start
list-model = Modell
list-theme = Farben
list-show-only = nur zeigen
list-sent-before = Verlauf
list-pasted = Eingefügtes
list-copy-as = kopieren als
list-open = öffnen
list-do = Befehle
list-commands = Befehle
list-and = { $first } und { $last }
mode-about-agent = liest, ändert und führt Befehle aus
mode-about-agent-asks = der Agent fragt vor jeder Änderung und jedem Befehl
mode-about-plan = liest, fragt und schreibt einen Plan
mode-about-ask = liest und antwortet
mode-about-debug = findet die Ursache eines Fehlers und behebt ihn
effort-about-auto = wie eingestellt
effort-about-off = wenn das Modell es erlaubt
theme-about-auto = folgt dem Hintergrund des Terminals
sandbox-about-guard = Befehle dürfen in den ganzen Workspace schreiben; geschützte Dateien werden wiederhergestellt
sandbox-about-strict = Befehle können ganz oben keine Dateien anlegen oder ersetzen
chip-view = ansehen
chip-about-view = lesen
chip-unfold = ausklappen
chip-about-unfold = als Text in den Entwurf
chip-edit = ändern
chip-about-edit = in $VISUAL oder $EDITOR
chip-remove = entfernen
chip-about-remove = aus dem Entwurf
copy-about-document = dieses Dokument
copy-about-all = alles Sichtbare
copy-markdown = Markdown
copy-plain = Text
copy-code = nur Code
copy-all-markdown = alles als Markdown
copy-all-plain = alles als Text
copy-all-code = aller Code
copy-about-markdown = die letzte Antwort als Markdown
copy-about-plain = ohne Auszeichnung
copy-about-code = nur ihr Code
copy-about-all-code = aller sichtbare Code
list-terms = enter zeigt Treffer, wie exit!=0 path:src/** Wörter

## Das Review

commit-title = Commit
commit-title-branch = { $hunks ->
    [one] 1 Änderung
   *[other] { $hunks } Änderungen
 } in { $files ->
    [one] 1 Datei
   *[other] { $files } Dateien
 } auf { $branch } committen
commit-title-detached = { $hunks ->
    [one] 1 Änderung
   *[other] { $hunks } Änderungen
 } in { $files ->
    [one] 1 Datei
   *[other] { $files } Dateien
 } committen, auf keinem Branch (HEAD losgelöst)
commit-message = Nachricht
commit-writing = ein Modell schreibt sie
commit-reading = lese das Repository…
commit-running = Committe. Hooks können dauern.
commit-running-stay = ein Commit läuft: warte auf seine Hooks; noch einmal beenden stoppt sie
commit-failed = Nichts wurde committet. Git sagt:
commit-no-message = ein Commit braucht eine Nachricht
commit-none-accepted = keine Änderungen zum Committen: alt+r zeigt sie
commit-not-here = Commits gehen hier nicht: kein Arbeitsordner auf diesem Rechner
commit-more-files = und { $count } weitere Dateien
commit-left-out = ausgelassen: { $what }
commit-author = Autor: { $author }
commit-hooks = Git startet diese Hooks und Filter: { $hooks }
commit-signs = Signiert den Commit, wie dein git eingestellt ist
commit-note = Schreibt auch eine Notiz nach refs/notes/sheaf (commit.note = off schreibt keine):
commit-note-short = Dateien, Zeilen, Adressen, Modell und die erste Zeile deiner Nachricht.
commit-note-full = Dateien, Zeilen, Adressen, Modell und deine ganze Nachricht.
commit-no-push = Nichts wird gepusht. Was du sonst geändert oder vorgemerkt hast, bleibt.
commit-done-said = committet: { $commit }: { $said }
diff-title = Änderungen seit dem letzten Commit
diff-none = seit dem letzten Commit ist nichts geändert
diff-not-here = git-Änderungen gehen hier nicht: kein Arbeitsordner auf diesem Rechner
diff-reading = lese das Repository…
btw-how = schreib die Frage dahinter: /btw warum zwei Schleifen?
btw-answered = die Antwort neben dem Gespräch ist da: /btw zeigt sie
btw-asking = warte auf das Modell
btw-facts = nicht Teil des Gesprächs
btw-no-answer = Das Modell gab keine Antwort.
config-title = Einstellungen
config-default = Standard
config-none-of = `{ $value }` ist keiner von diesen Werten: { $values }.
config-written = Geschrieben in { $place }. Es gilt ab dem nächsten Start.
config-removed = Entfernt in { $place }. Das gilt ab dem nächsten Start.
config-written-now = Geschrieben nach { $place }. Es gilt schon.
config-removed-now = Entfernt bei { $place }. Das gilt schon.
config-overridden = Geschrieben in { $place }, aber { $by } geht vor.
config-again = enter entfernt diese Einstellung aus deiner Datei
config-not-yours = deine Datei setzt das nicht
config-secret = ein Geheimnis, das hier nicht geändert wird: sheaf login, key_file oder key_command
config-kind-text = Text
config-kind-switch = true | false
config-kind-from = ganze Zahl ab { $least }
config-kind-between = ganze Zahl, { $least } bis { $most }
config-kind-number = Zahl
config-kind-duration = Dauer, etwa "60s"
config-kind-address = Adresse
config-kind-proxy = Adresse eines Proxys | none
config-kind-path = Pfad
config-kind-list = Liste von Texten
config-kind-words = Liste aus { $words }
config-kind-rules = Liste von Regeln
config-kind-table = Tabelle von Texten
config-kind-secret = geheimer Text
config-kind-command = Befehl, als Text für die Shell oder als Liste
permissions-remove = enter entfernt sie aus deinen Einstellungen
permissions-again = enter noch einmal entfernt diese Regel
permissions-add = + eine Regel hinzufügen
permissions-add-how = zum Beispiel Shell(git push), Write(docs/**), Read(~/notes/**), WebFetch(docs.rs)
memory-title = Das merken?
memory-reading = lese die Regeldateien…
memory-you = du, in allen Projekten
memory-project = dieses Projekt
memory-send = nicht merken: als Nachricht senden
memory-about-you = Es gilt ab deinem nächsten Gespräch.
memory-about-project = Es gehört zum Projekt. /trust fragt neu nach der geänderten Datei.
memory-about-new = neue Datei
memory-files = Regeldateien
memory-written-project = AGENTS.md hat sich geändert: /trust fragt danach
memory-changed = { $file } wurde inzwischen geändert: nichts geschrieben
memory-not-utf8 = { $file } ist kein UTF-8-Text; ändere die Datei in deinem Editor
memory-link = { $file } ist ein Link: nichts geschrieben
status-title = Status
usage-title = Verbrauch
status-server = Server
status-model = Modell
status-key = Schlüssel aus
status-no-key = kein Schlüssel
status-window = Kontext
status-tokens = { $count } Tokens
status-mode = Modus
status-folder = Ordner
status-version = Version
status-turn = letzte Runde
status-session = Sitzung
status-spent = { $count } Tokens, { $cost }
status-spent-unknown = { $count } Tokens, Preis unbekannt
status-limits = Grenzen des Servers
status-limit-all = gesamt
status-limit = { $limit }
status-limit-left = noch { $left }
status-limit-left-of = noch { $left } von { $limit }
status-limit-reset = neu: { $reset }
status-reported = gemeldet { $ago }
status-no-limits = Der Server meldet keine Grenzen.
status-not-asked = Noch unbekannt: der Server meldet Grenzen mit seinen Antworten.
review-title = Review
review-this-turn = diese Runde
review-turn = Runde { $turn }
review-enter-edits = Enter öffnet den Editor
review-everything = das ganze Gespräch
review-facts = { $at } von { $count }   { $accepted } angenommen   { $rejected } abgelehnt
review-facts-short = { $at } von { $count }  ✓ { $accepted }  ✗ { $rejected }
review-rejected = ✗ abgelehnt
review-failed = ✗ fehlgeschlagen
review-not-written-yet = ◐ noch nicht geschrieben
review-accepted = ✓ angenommen
review-applied = ○ angewandt
review-committed = ✓ committet
review-none-accepted = hier gibt es nichts zu committen: alles ist abgelehnt, rückgängig gemacht oder nicht geschrieben
review-hunk = Stelle { $at } von { $count }
review-accepted-edited = ✓ angenommen, geändert
review-left-out = ✗ abgelehnt
review-too-soon = zu schnell nach der letzten Taste: noch einmal drücken
review-you-say = dein Kommentar: { $comment }

## Zurückgehen

rewind-title = Zurück
rewind-to = zu einer Nachricht
rewind-place = { $at } von { $count }
rewind-undone = zurückgenommen
rewind-nothing-changed = seither keine Datei geändert
rewind-going = stellt { $going } von { NUMBER($count) } { $count ->
    [one] Datei
   *[other] Dateien
} wieder her
rewind-not-over = deine späteren Änderungen bleiben
rewind-ways = Zurück zu Runde { $turn }:
rewind-way-both = Gespräch und { $count ->
    [one] { NUMBER($count) } Datei
   *[other] { NUMBER($count) } Dateien
} zurücksetzen
rewind-way-files = nur { $count ->
    [one] { NUMBER($count) } Datei
   *[other] { NUMBER($count) } Dateien
} zurücksetzen
rewind-way-both-over = beides zurücksetzen, spätere Änderungen verwerfen: { $count ->
    [one] { NUMBER($count) } Datei
   *[other] { NUMBER($count) } Dateien
}
rewind-way-files-over = nur Dateien zurücksetzen, spätere Änderungen verwerfen: { $count ->
    [one] { NUMBER($count) } Datei
   *[other] { NUMBER($count) } Dateien
}
rewind-way-conversation = nur das Gespräch zurücksetzen
rewind-partial = die ältesten Änderungen sind nicht mehr gespeichert
rewind-in-all = … insgesamt { $count }
rewind-lost = nicht gespeichert
rewind-stays = bleibt
rewind-changed-since = später geändert
rewind-changed-in = geändert in Runde { $turn }
rewind-comes-back = wiederhergestellt
rewind-goes = gelöscht
rewind-mode = Rechte

## Gespeicherte Gespräche

sessions-title = Gespräche
sessions-none = keine gespeicherten Gespräche
sessions-none-here = keine Treffer in diesem Ordner; tab sucht überall
sessions-everywhere = überall
sessions-everywhere-archived = überall, mit archivierten
sessions-here = dieser Ordner
sessions-here-archived = dieser Ordner, mit archivierten
sessions-facts = { $scope }  { $at } von { $count }
sessions-doomed = noch einmal ctrl+d löscht es endgültig
sessions-untitled = (keine Nachrichten)
sessions-archived = archiviert
sessions-git-branch = git { $name }
sessions-branches = { $count } Branches
sessions-turns = { $place }  { $count } { $count ->
    [one] Runde
   *[other] Runden
}
ago-now = jetzt
ago-seconds = vor { $count } s
ago-minutes = vor { $count } min
ago-hours = vor { $count } h
ago-days = vor { $count } Tg
ago-months = vor { $count } Mon
ago-years = vor { $count } J

## Befehle im Hintergrund

tasks-title = Befehle im Hintergrund
tasks-none = kein Befehl läuft im Hintergrund
tasks-no-output = noch keine Ausgabe
tasks-stopping = wird beendet

## Eingereihte Nachrichten

waiting-title = eingereihte Nachrichten

## Fußzeile: Wirkung einer Taste in ein, zwei Wörtern

footer-choose = wählen
footer-deltas = Deltas
footer-any-key = Taste
footer-skip-wait = weiter
footer-close = schließen
footer-scroll = scrollen
footer-lines = Zeile
footer-page = Seite
footer-back = zurück
footer-accept = annehmen
footer-reject = ablehnen
footer-edit = ändern
footer-comment = Kommentar
footer-hunk = Änderung
footer-file = Datei
footer-side-by-side = nebeneinander
footer-context = Umgebung
footer-each-hunk = einzeln
footer-turn-or-all = Runde/alles
footer-go-there = hingehen
footer-move = bewegen
footer-reorder = ordnen
footer-forks = Abzweigungen
footer-files = Dateien
footer-leave-it = diese behalten
footer-take-back = entfernen
footer-turn = Runde
footer-letters = a-z
footer-find = suchen
footer-go = hingehen
footer-step = Schritt
footer-repaired = repariert
footer-same-document = Dokument
footer-copy = kopieren
footer-curl = curl
footer-take-up = fortsetzen
footer-folder-or-everywhere = Ordner/überall
footer-archive = archivieren
footer-archived-too = auch archivierte
footer-remove = löschen
footer-reset = zurücksetzen
footer-done = fertig
footer-rewind = zurückspulen
footer-take = nehmen
footer-complete = ergänzen
footer-run = ausführen
footer-answer = antworten
footer-composer = Eingabe
footer-stop = stoppen
footer-keys = Tasten
footer-build = umsetzen
footer-todos = Todos
footer-tick = abhaken
footer-reword = ändern
footer-insert = einfügen
footer-steer = mitreden
footer-queue = einreihen
footer-newline = neue Zeile
footer-add = hinzufügen
footer-write = schreiben
footer-commit = committen
footer-open = öffnen
footer-accept-all = alle annehmen
footer-transcript = Verlauf
footer-send = senden
footer-mode = Modus
footer-palette = Palette
footer-next = weiter
footer-previous = zurück
footer-end-search = Suche aus
footer-everything = alles
footer-fold = klappen
footer-note = merken oder senden
footer-plan = Plan

## Seiten

page-leave = esc geht zurück
page-keys = Tasten und Befehle
page-everywhere = Überall
page-in-composer = In der Eingabe
page-in-transcript = Im Verlauf (tab)
page-in-text = In jedem Textfeld
page-on-plan = Auf einem Plan
page-on-question = Auf einer Frage
page-text-undo = rückgängig
page-text-redo = wiederholen
page-text-move = zeichen- und zeilenweise bewegen
page-text-word = wortweise bewegen
page-text-line = zum Anfang oder Ende der Zeile
page-text-select = markieren; Getipptes ersetzt es, ctrl+c kopiert es
page-text-all = alles markieren
page-text-delete = voriges Zeichen löschen, nächstes Zeichen
page-text-cut-before = voriges Wort löschen
page-text-cut-after = nächstes Wort löschen
page-text-cut-line = bis zum Anfang der Zeile löschen, bis zum Ende
page-text-transpose = die Zeichen an der Schreibmarke vertauschen
page-text-yank = wieder einfügen
page-question-choose = eine Option markieren
page-question-check = die markierte Option ankreuzen, nach einem Pfeil
page-question-send = antworten und die nächste Frage zeigen; nach der letzten senden
page-question-previous = vorige Frage
page-question-other = Buchstaben beginnen eine eigene Antwort
page-question-later = die Frage warten lassen
page-question-approval = eine Freigabe, während du schreibst: einmal, diese Sitzung, nein
page-question-decide = eine Freigabe, nach tab: einmal, nein, nein mit Grund
page-question-mark = nach tab: „für diese Sitzung“ oder „immer“ markieren; enter bestätigt
page-in-review = Im Review (alt+r)
page-review-accept = die Änderung annehmen, oder schreiben, wenn sie wartet; alle annehmen
page-review-commit = committen, was angenommen ist, oder alles, wenn nichts entschieden ist
page-review-reject = sie ablehnen: rückgängig machen oder nicht schreiben
page-review-edit = für $VISUAL oder $EDITOR vormerken; Enter öffnet
page-review-comment = vom Modell Änderungen verlangen
page-review-step = nächste Änderung, vorige Änderung
page-review-file = nächste Datei, vorige Datei
page-review-scroll = scrollen, bei langen Zeilen seitwärts
page-review-sides = nebeneinander oder in einer Spalte
page-review-context = mehr oder weniger unveränderte Zeilen um eine Änderung
page-review-scope = Änderungen dieser Runde oder des ganzen Gesprächs
page-commands = Befehle
page-settings = Einstellungen
page-pasted = Eingefügt
page-context = Kontext
page-context-about = etwa { $count } Token
page-context-about-of = etwa { $count } Token von { $of }
page-cost = Kosten
page-cost-unknown = Preis unbekannt
page-cost-facts = { $sum }   { $sent } Token hinein, { $made } heraus
page-cost-turn = Runde
page-cost-in = hinein
page-cost-cached = gecacht
page-cost-out = heraus
page-cost-time = Zeit
page-cost-cost = Kosten
page-cost-model = Modell
page-sandbox = Sandbox
page-permissions = Berechtigungen
permissions-run-ask = Befehle und Dateiänderungen fragen.
permissions-run-list = Befehle fragen; Dateiänderungen nicht, sie lassen sich rückgängig machen.
permissions-run-sandbox = Befehle und Dateiänderungen laufen ohne Frage, solange die volle Sandbox aktiv ist.
permissions-run-force = Nur geschützte Dateien fragen.
permissions-doubtful = Eine Regel, die verbietet oder fragt, ist nicht lesbar; deshalb fragt alles: /problems zeigt sie.
permissions-deny = Nie
permissions-ask = Fragt immer
permissions-allow = Erlaubt
permissions-session = Für diese Sitzung erlaubt
permissions-where = „Immer“ sichert in [approvals] deiner config.toml; /permissions reset widerruft die Regeln dieser Sitzung.

## Teile des Kontexts

context-system-prompt = Systemprompt
context-rule = Regel { $path }
context-servers = Anweisungen von Servern
context-tools = Tools
context-tool = Tool { $name }
context-messages = deine Nachrichten
context-answers = Antworten
context-results = Ergebnisse von Tools
context-images = Bilder
context-unsent = Nicht gesendet
context-all = gesamt
context-appended = mit deinem Text am Ende
context-replaced = { $count ->
    [one] mit { $count } Teil von dir ersetzt
   *[other] mit { $count } Teilen von dir ersetzt
}
context-untrusted = nicht geladen: Diesem Workspace wird nicht vertraut
context-description = nur die Beschreibung
context-awaits-nothing = immer
context-awaits-files = erst mit passenden Dateien
context-awaits-model = erst, wenn das Modell fragt
context-awaits-user = erst, wenn du sie nennst
context-tool-count = { $count ->
    [one] { $count } Tool
   *[other] { $count } Tools
}
context-switched-off = in den Einstellungen abgeschaltet
context-calls-none = laut Einstellungen ruft dieses Modell keine Tools auf
context-no-checker = hier läuft kein Prüfprogramm, oder der Ordner ist nicht vertraut
context-no-server = kein Sprachserver für dieses Projekt installiert, oder der Ordner ist nicht vertraut
context-no-skill = hier gibt es keine Skills
context-no-search = kein Suchdienst eingestellt: setze web.search.kind
context-edit-style = agent.edit_style schließt es aus
context-other-models = für Modelle, die damit trainiert wurden
context-small-window = kleines Fenster: agent.profile = "full" bietet alle an
context-guess = Schätzung: Server zählen verschieden
context-window = von { NUMBER($count) }
context-counted = der Server zählte { NUMBER($count) } in der letzten Anfrage
context-unpriced = kein bekannter Preis für { $model }
context-unpriced-own = kein bekannter Preis für das Modell des Servers

## Schichten der Sandbox

wall-files = Dateien
wall-processes = Prozesse
wall-network = Netz
wall-capabilities = Capabilities
wall-system-calls = Systemaufrufe
wall-kernel-files = alles ist nur lesbar außer dem Workspace und einem privaten /tmp; Geheimnisse sind verborgen
wall-kernel-processes = Befehle sehen nur ihre eigenen Prozesse, schicken nur ihnen Signale und lassen keine zurück
wall-kernel-network = abgeschottet, nur mit eigenem Loopback
wall-kernel-capabilities = abgelegt; kein Programm bekommt sie zurück
wall-kernel-system-calls = seccomp sperrt Mounts, Namespaces, Tracing, andere Sockets und eingeschleuste Tastendrücke
wall-seatbelt-files = Seatbelt: nur der Workspace ist beschreibbar; Geheimnisse sind nicht lesbar
wall-seatbelt-processes = Prozesse, die die Session eines Befehls verlassen, werden nicht angehalten; ihre Zahl ist nicht begrenzt
wall-seatbelt-network = Seatbelt: nur das Loopback dieses Rechners
wall-landlock = Version { $version }: Dateien, Signale, abstrakte Sockets
wall-landlock-old = Version { $version }: Dateien, aber keine Signale und abstrakten Sockets
wall-no-landlock = dieser Kernel unterstützt es nicht
wall-needless = nicht nötig
wall-note-here-only = Nur für dieses Gespräch: { $why }
wall-note-halted = Ein Befehl hat geschützte Dateien geändert. In diesem Gespräch fragt nun jeder Befehl; neue Dateien ganz oben sind gesperrt.
wall-note-guarded = In diesem Ordner gilt guard: Befehle, die du erlaubst, dürfen in den ganzen Workspace schreiben.
wall-note-guarded-files = Nach jedem Befehl werden geschützte Dateien (.git, Einstellungen von Editoren und Agenten, ignorierte Dateien) wiederhergestellt.
wall-note-guarded-meanwhile = Bis dahin sind sie wirklich geändert, und Programme, die sie lesen, sehen das.
wall-note-guarded-lost = Gelöschte git-Objekte sind verloren.
wall-note-guarded-after = Ändert ein Befehl geschützte Dateien, erfährst du es, und spätere Befehle fragen.
wall-note-guarded-off = Ordner mit Geheimnissen bleiben gesperrt. /sandbox strict schaltet guard ab.
wall-note-strict = Befehle können ganz oben keine Dateien anlegen oder ersetzen; so bleibt jede geschützte Datei unverändert.
wall-note-strict-off = Stört das: /sandbox guard erlaubt es und stellt geschützte Dateien wieder her.
wall-note-needless = guard ist für lückenhafte Sandboxes. Hier schützt der Kernel diese Dateien schon.

## Meldungen rechts in der Fußzeile

inline-branched = hier beginnt ein neuer Branch
news-copied-by-terminal = kopiert: { $what } (Terminal, OSC 52)
news-copied = kopiert: { $what } ({ $way })
news-not-copied = { $what } nicht kopiert: { $why }
news-no-models = der Server listet keine Modelle; /model NAME nimmt jeden Namen
news-nothing-sent = keine Nachrichten im Verlauf
news-not-saved = { $path } ließ sich nicht schreiben: { $why }
news-other-answer = unerwartete Antwort (Programmfehler)
news-no-picture = kein Bild in der Zwischenablage
news-not-remembered = Verlauf nicht gespeichert: { $why }
news-alone = hier gibt es keine anderen Gespräche
news-no-picture-file = { $name } ist keine PNG-, JPEG-, GIF- oder WebP-Datei
news-picture-too-large = { $name } ist größer als 20 MiB
news-editor-ended = { $editor } beendet: { $status }
news-editor-not-started = { $editor } ließ sich nicht starten: { $why }; setze $VISUAL oder $EDITOR
news-outside = { $path } liegt außerhalb des Workspace
news-absent = { $path } gibt es nicht
news-problems = { $count ->
    [one] ein Problem in den Einstellungen: /problems
   *[other] { $count } Probleme in den Einstellungen: /problems
}

## Eingefügter Text im Entwurf

message-build = { $plan } bauen
message-build-edited = { $plan } wie bearbeitet bauen
message-instructions = { $count ->
    [one] Anweisungen, 1 Zeile
   *[other] Anweisungen, { $count } Zeilen
}
message-with-plan = mit deinem bearbeiteten Plan
pasted-lines = { $count } Zeilen eingefügt
pasted-characters = { $count } Zeichen eingefügt

# protected files that a killed program left
left-message = geschützte Dateien
left-killed = sheaf wurde beendet, während ein Befehl lief
left-killed-aside = geschützte Dateien, die seitdem neu oder geändert sind, wurden beiseitegelegt:
left-aside = Diese geschützten Dateien sind seitdem neu oder geändert. Sie wurden beiseitegelegt, damit nichts sie benutzt:
left-as-it-is = Unverändert geblieben ist:
left-file-changed = { $path } (geändert), jetzt { $aside }
left-file-new = { $path } (neu), jetzt { $aside }
left-more = und { $count } weitere
left-question = Diese Dateien zurücklegen?
left-leave = Beiseite lassen
left-leave-about = Voreinstellung
left-back = Zurücklegen
left-back-about = wenn du sie selbst angelegt hast
left-stays-aside = Beiseitegelegt. Nichts entfernt sie.
left-put-back = Zurückgelegt.
left-put-back-but = Zurückgelegt, aber:
left-stuck = { $path } bleibt beiseite: { $why }
left-note-too-large = der Ordner ist zu groß, um zu sagen, was der Befehl angelegt hat
left-note-cut = nicht alles im Ordner konnte angesehen werden: was der Befehl angelegt hat, ist nicht ganz bekannt
left-note-unreadable = die Liste dessen, was vor einem Befehl da war, ist beschädigt: was dieser Befehl angelegt hat, ist nicht bekannt
left-note-gone = { $path } war vor dem Befehl da und ist weg
left-note-stuck = { $path } ist neu oder geändert und konnte nicht beiseitegelegt werden: { $why }
left-note-repository = der Befehl hat vielleicht das Repository { $path } angelegt: seine Hooks und seine Konfiguration laufen, wenn git dort benutzt wird, also sieh sie dir vorher an
left-note-later = { $path } ist neu oder geändert, seit der Befehl endete: unverändert geblieben
left-note-unsure = { $path } wurde gefunden und war vielleicht schon vor dem Befehl da: unverändert geblieben
left-note-packaged = { $path } ist neu in einem Ordner, den git ignoriert oder der Pakete enthält: unverändert geblieben
# Skills und Hooks
skills-title = Skills
skills-about = Das Modell lädt einen Skill, der zur Aufgabe passt; /name lädt ihn sofort.
skills-none = keine Skills: schreibe .sheaf/skills/NAME/SKILL.md
hooks-title = Hooks
problems-title = Probleme
problems-settings = { $count ->
    [one] 1 Problem in den Einstellungen
   *[other] { $count } Probleme in den Einstellungen
}
hooks-about = Programme, die sheaf an festen Stellen aufruft.
hooks-none = keine Hooks: schreibe .sheaf/hooks.json
extensions-cost = { $count } Tokens in jeder Anfrage
extension-loaded = geladen
extension-user-only = nur mit /name
extension-model-only = nur durch das Modell
extension-untrusted = nicht vertraut, /trust fragt
extension-shadowed = verdeckt von { $path }
extension-unsupported = nicht unterstützt
extension-tokens = { $each } Tokens gelistet, { $used } geladen
servers-title = MCP-Server
servers-none = Keine MCP-Server eingerichtet. sheaf mcp add NAME -- BEFEHL fügt einen hinzu.
servers-off = aus
servers-unapproved = nicht genehmigt
servers-redefined = seit der Genehmigung geändert
servers-untrusted = seiner Datei wird nicht vertraut: /trust
servers-unusable = kann nicht starten
servers-starting = startet
servers-ready = bereit, { $tools ->
    [one] 1 Werkzeug
   *[other] { $tools } Werkzeuge
 }, { $tokens } Tokens
servers-sign-in = braucht Anmeldung: sheaf mcp login { $name }
servers-failed = fehlgeschlagen
servers-changed = geändert: nicht angeboten
servers-tokens = { $count } Tokens
servers-more = { $count ->
    [one] 1 weitere Zeile: Bild ab
   *[other] { $count } weitere Zeilen: Bild ab
}
servers-given = bekommt: { $names }
servers-gaps = Sandbox: { $gaps }
footer-approve = genehmigen
footer-restart = neu starten
footer-tools = Werkzeuge
footer-switch = an/aus
hint-mcp = MCP-Server
about-mcp = MCP-Server und ihre Werkzeuge zeigen

## Erste Seite, wenn kein Modell eingestellt ist

first-peer = kein Modell
first-welcome = Willkommen bei sheaf.
first-documents = Eine Antwort ist ein Bündel von Dokumenten: Text, Code, Änderungen, Befehle, Pläne, Fragen.
first-numbers = Jedes hat eine Nummer und lässt sich für sich falten, kopieren und beantworten.
first-nothing = Kein Schlüssel in der Umgebung und kein Modellserver auf localhost. Eines davon genügt:
first-login = `sheaf login` in einer Shell: speichert einen API-Schlüssel
first-variable = `OPENAI_API_KEY` setzen, oder `OPENAI_BASE_URL` für einen eigenen Server
first-local = Ollama, LM Studio, llama.cpp oder vLLM starten
first-gateway = `sheaf --gateway URL` für ein Gateway
first-found = Noch ist kein Modell eingestellt, aber sheaf hat gefunden:
first-with = mit `{ $model }`
first-with-more = mit `{ $model }` und { $count } weiteren
first-none-loaded = kein Modell geladen
first-key = Schlüssel in `{ $variable }`
first-address = unter { $url }, aus `{ $variable }`
first-server = unter { $url }
first-keep = vorerst; dauerhaft: sheaf config set provider { $name }
first-tour = Zuerst die Tour zeigen
first-tour-about = ein aufgezeichnetes Gespräch; nichts wird gesendet
first-live = Zuerst ausprobieren
first-live-about = der echte Agent mit einem Modell nach Drehbuch, in einem temporären Projekt; nichts wird gesendet
first-question = Welches Modell soll ich verwenden? Sonst: die Adresse eines Gateways
first-message-waits = Deine Nachricht wird gesendet, sobald du ein Modell wählst.

## Einstellungen, wie /config sie beschreibt. Die englischen Texte stehen bei den Feldern in src/config/settings.rs.

setting-provider = Anbieter: einer aus `providers` oder ein bekannter Dienst wie openai, openrouter, ollama.
setting-model = Modell, sofern der Anbieter selbst keines nennt. Leer: sein übliches; `sheaf status` zeigt, welches.
setting-mode = Modus beim Start.
setting-theme = Name eines Farbschemas oder `auto`: dunkel oder hell wie der Hintergrund des Terminals.
setting-color = Farben verwenden. Ein nicht leeres `NO_COLOR` schaltet sie ab.
setting-motion = Laufende Zeiten anzeigen.
setting-mouse = Maus verwenden: Das Rad scrollt, ein Klick wählt aus. Zum Markieren im Terminal dann Umschalt halten.
setting-links = Links anklickbar machen, wo das Terminal es kann (OSC 8).
setting-rules = Eigene Regeln für jedes Modell, zusätzlich zu denen des Arbeitsordners: je ein Text.
setting-trusted = Ordner, deren Arbeitsordner ohne Nachfrage vertraut sind; `~/` ist der Home-Ordner.
setting-net-retries = So oft wird eine fehlgeschlagene Anfrage wiederholt: keine Verbindung, ein Server, der überlastet ist oder versagt hat, eine Antwort, die abbrach, bevor ein Aufruf vollständig war.
setting-net-retry-for = Höchstdauer aller Wiederholungen; eine längere Pause, um die ein Server bittet, wartet nur ein Mensch ab.
setting-gateway-url = Adresse des Dokumenten-Gateways, das statt eines Anbieters verwendet wird.
setting-gateway-token = Der Schlüssel oder das Token. In einer Datei nur, wenn niemand sonst sie lesen kann.
setting-gateway-token-env = Umgebungsvariable mit dem Schlüssel.
setting-gateway-token-command = Befehl, dessen erste Ausgabezeile der Schlüssel ist; er läuft, wenn eine Anfrage gestellt wird.
setting-gateway-token-file = Datei mit dem Schlüssel, die nur du lesen kannst.
setting-gateway-token-keyring = Name des Schlüssels im Schlüsselbund des Systems, unter dem Dienst `sheaf`; nur in Builds mit dem Feature `keyring`.
setting-gateway-dialect = Dialekt des Streams, der angefordert wird.
setting-gateway-context = Was vom Arbeitsordner mitgeschickt wird: sein Pfad; dazu deine Regeln und die eines vertrauten Arbeitsordners; dazu die Namen seiner Dateien. Mit `@` genannte Dateien gehen immer als offene Dateien mit.
setting-gateway-headers = Zusätzliche Header jeder Anfrage. Die Werte bleiben geheim.
setting-gateway-ca-file = Zertifikate, denen zusätzlich zu denen des Systems vertraut wird (PEM).
setting-gateway-client-cert = Dein Zertifikat und sein privater Schlüssel in einer Datei (PEM).
setting-gateway-proxy = Proxy statt des Proxys aus der Umgebung, oder `none`.
setting-gateway-allow-http = Eine unverschlüsselte Adresse in einem privaten Netz erlauben.
setting-gateway-connect-timeout = Höchstdauer für den Verbindungsaufbau.
setting-gateway-first-byte-timeout = Höchstdauer bis zum ersten Byte einer Antwort; ein Server, der sein Modell erst lädt, braucht Minuten.
setting-gateway-idle-timeout = Höchstdauer ohne ein einziges Byte, Lebenszeichen eingeschlossen.
setting-providers-base-url = Adresse bis einschließlich `/v1`. Ein bekannter Dienst braucht keine.
setting-providers-kind = Format der Anfragen; openai bedeutet Chat Completions, wie bei den meisten Servern. Ein bekannter Dienst braucht keines.
setting-providers-model = Modell für diesen Anbieter.
setting-providers-think-tags = Einen `<think>`-Block am Anfang einer Antwort als Gedanken zeigen.
setting-providers-allow-fields = Optionale Felder der Anfrage, die der Server annimmt, falls er unbekannte ablehnt. Leer: Alle werden gesendet.
setting-providers-num-ctx = Kontextfenster in Token, das von Ollama verlangt wird. Leer: das des Modells, höchstens 32768.
setting-providers-max-tokens = Höchstlänge einer Antwort in Token, die verlangt wird.
setting-providers-temperature = Temperatur, mit der das Modell auswählt.
setting-providers-replay-reasoning = Wann frühere Gedanken an das Modell zurückgehen.
setting-prompt-append = Text am Ende des Systemprompts; oder die Datei `prompts/append.md` neben den Einstellungen.
setting-prompt-style = Ausgabestil: der Name einer Datei in `output-styles/` neben den Einstellungen, in `.sheaf` oder `.claude`.
setting-prompt-replace = Ersatz für einen Block des Systemprompts, oder die Datei `prompts/<block>.md`: role, communication, no_tools, tool_calling, maximize_parallel_tool_calls, maximize_context_understanding, making_code_changes, using_git, long_work, citing_code, task_management, model_guidance, plan_mode, ask_mode, debug_mode.
setting-roles-fast = Modell für Titel, Zusammenfassungen und andere kleine Aufgaben: Anbieter/Modell oder ein Modell des gewählten Anbieters.
setting-roles-apply = Modell, das skizzierte Änderungen in Dateien einarbeitet.
setting-roles-embed = Modell, das Code nach seiner Bedeutung findet: Anbieter/Modell, "local/NAME" für ein installiertes (`sheaf index model`) oder "none". Leer: ein installiertes, falls es eines gibt.
setting-roles-fallback = Modelle, die der Reihe nach versucht werden, wenn das vorige überlastet ist.
setting-index-cache = Gemeinsame Vektoren: file:///ordner oder eine https-Adresse, die GET, HEAD und PUT beantwortet. Nur Vektoren und Prüfsummen werden dorthin gesendet.
setting-index-size = Höchstgröße aller gespeicherten Vektoren in Bytes. Die am längsten unbenutzten gehen zuerst.
setting-index-background = Vektoren für den ganzen Arbeitsordner mit einem lokalen Modell berechnen, während sheaf nichts zu tun hat.
setting-models-window = Kontextfenster in Token.
setting-models-price-in = Dollar je Million Token der Eingabe.
setting-models-price-out = Dollar je Million Token der Ausgabe.
setting-models-price-cached = Dollar je Million Token der Eingabe, die aus dem Cache des Servers kommen.
setting-models-max-output = Höchstlänge einer Antwort in Token.
setting-models-tools = true, wenn es Werkzeuge aufrufen kann.
setting-models-images = true, wenn es Bilder annimmt.
setting-models-reasoning = true, wenn es vor der Antwort nachdenkt.
setting-agent-hooks = Hooks aus Dateien (hooks.json, Einstellungen von Claude Code): aus, in der Sandbox, in der Sandbox mit Netz oder ohne Sandbox.
setting-agent-profile = Werkzeuge, die ein Modell bekommt: alle, eine kurze Liste, oder die kurze Liste bei Fenstern unter 32.000 Token.
setting-agent-edit-style = Werkzeuge zum Ändern von Dateien: genaues Ersetzen, eine Skizze, die eingearbeitet wird, oder beides.
setting-agent-effort = Denkaufwand von Modellen, die das unterstützen.
setting-agent-language-servers = In einem vertrauten Arbeitsordner mit Sandbox prüfen Language-Server jede Änderung, bevor sie als fertig gilt.
setting-agent-lint-wait = So lange wartet das Ergebnis einer Änderung in einem vertrauten Arbeitsordner auf Prüfprogramme und Language-Server; 0s: Änderungen werden nicht geprüft. Ein langsameres Prüfprogramm läuft nicht noch einmal.
setting-agent-max-requests = So viele Anfragen an das Modell je Nachricht, bevor du gefragt wirst, ob es weitergeht.
setting-agent-max-calls = So viele Werkzeugaufrufe je Nachricht, bevor du gefragt wirst, ob es weitergeht.
setting-agent-warn-failures = Das Modell nach so vielen gleichen Fehlern in Folge warnen.
setting-agent-max-failures = Nach so vielen gleichen Fehlern in Folge aufhören.
setting-agent-max-dollars = Kosten einer Antwort in Dollar, ab denen du gefragt wirst, ob es weitergeht. Vor jeder Anfrage geprüft, wenn der Preis des Modells bekannt ist.
setting-agent-max-dollars-in-all = Dasselbe für ein ganzes Gespräch.
setting-hooks-event = Ereignis: session_start, session_end, prompt, tool_before, tool_after, tool_failed, shell_before, mcp_before, read_before, edit_after, compact_before, stop, notification; oder eines von Cursor oder Claude Code, in deren Format.
setting-hooks-command = Die Befehlszeile. Sie bekommt das Ereignis als JSON auf der Standardeingabe; Exit-Code 2 lehnt ab.
setting-hooks-matcher = Regulärer Ausdruck für Werkzeug, Befehl oder Datei. Leer: immer.
setting-hooks-timeout = Höchstdauer.
setting-hooks-fail-closed = Ablehnen, wenn der Hook selbst scheitert.
setting-hooks-sandbox = In der Sandbox ausführen.
setting-hooks-network = Netzzugang geben.
setting-tools-enabled = Das Werkzeug den Modellen anbieten.
setting-tools-modes = Modi, die das Werkzeug anbieten, von denen, die es erlauben.
setting-tools-allowed-paths = Glob-Muster ab der Wurzel des Arbeitsordners für Dateien, die es anfassen darf, etwa "src/**". Andere werden abgelehnt.
setting-tools-require-approval = Vor jedem Aufruf fragen.
setting-tools-max-bytes = Höchstgröße eines Ergebnisses für das Modell in Bytes.
setting-limits-read-lines = Zeilen in einem Ergebnis von `read_file`.
setting-limits-read-bytes = Bytes in einem Ergebnis von `read_file`.
setting-limits-line-characters = Zeichen, nach denen eine Zeile einer Datei abgeschnitten wird.
setting-limits-grep-matches = Treffer in einem Ergebnis von `grep`.
setting-limits-grep-files = Dateien in einem Ergebnis von `grep`.
setting-limits-grep-bytes = Bytes in einem Ergebnis von `grep`.
setting-limits-glob-files = Dateien einer Suche nach Namen.
setting-limits-list-entries = Einträge einer Ordnerliste.
setting-limits-search-chunks = Abschnitte in einem Ergebnis von `codebase_search`.
setting-limits-search-bytes = Bytes in einem Ergebnis von `codebase_search`.
setting-limits-search-time = Zeit, nach der eine Suche liefert, was sie bis dahin gefunden hat.
setting-limits-output-head = Bytes der Ausgabe eines Befehls, die das Modell sieht: vom Anfang.
setting-limits-output-tail = Bytes der Ausgabe eines Befehls, die das Modell sieht: vom Ende (das ganze Protokoll bleibt erhalten).
setting-limits-fetch-bytes = Bytes einer Webseite, die geladen werden.
setting-limits-fetch-text = Bytes vom Text einer Webseite für das Modell.
setting-limits-fetch-redirects = Weiterleitungen, denen gefolgt wird.
setting-limits-fetch-time = Höchstdauer für eine Seite.
setting-approvals-run = Was ohne Freigabe läuft: nichts, das ausführt oder ändert; Änderungen an Dateien und gelistete Befehle; in der vollen Sandbox auch jeder Befehl. Ein Projekt kann es nur verschärfen.
setting-approvals-allow = Was ohne Nachfrage läuft, etwa "Shell(cargo test)", "Read(~/notes/**)", "WebFetch(docs.rs)".
setting-approvals-ask = Was immer nachfragt, auch wenn es erlaubt ist. Ein Projekt kann etwas hinzufügen.
setting-approvals-deny = Was abgelehnt wird, auch wenn es erlaubt ist. Ein Projekt kann etwas hinzufügen.
setting-approvals-program = Befehl, der ohne Bildschirm über Freigaben entscheidet: Er bekommt jede als JSON auf der Standardeingabe und gibt `{"{"}"behavior": "allow"{"}"}` oder `{"{"}"behavior": "deny", "message": "…"{"}"}` aus. Alles andere ist eine Ablehnung.
setting-approvals-program-timeout = Zeit, die der Befehl für eine Antwort hat.
setting-web-allow-private = Hosts, die web_fetch erreichen darf, obwohl sie auf diesem Rechner oder in einem privaten Netz sind, etwa localhost.
setting-web-search-kind = Dienst, der für das Modell im Web sucht. `provider`: der Anbieter des Modells selbst (Anthropic, Gemini 3, OpenAIs denkende Modelle); das kostet je Suche Geld und sendet die Suchworte ohne Nachfrage hinaus. Leer: keine Websuche.
setting-web-search-url = Adresse des Dienstes: nötig für SearXNG, bei den anderen bekannt.
setting-ui-output-rows = Zeilen der Ausgabe eines Befehls, die eingeklappt zu sehen sind: die ersten und die letzten.
setting-ui-notify = Benachrichtigung, wenn eine Antwort endet oder eine Frage wartet, während ein anderes Fenster den Fokus hat.
setting-ui-language = Sprache der Oberfläche: `auto` (aus LANGUAGE, LC_ALL, LC_MESSAGES und LANG), `en`, `de` oder der Name einer Datei im Ordner `locale` neben den Einstellungen.
setting-ui-syntax-theme = TextMate-Schema für Code: ein Pfad oder der Name einer .tmTheme-Datei neben deinen eigenen Farbschemas.
setting-ui-thinking = Wie die Gedanken eines Modells gezeigt werden.
setting-ui-status = Angaben rechts in der Kopfzeile, der Reihe nach. Der Zustand der Sandbox ist immer zu sehen.
setting-ui-status-command = Befehl, dessen Ausgabe diese Angaben ersetzt, bis zu vier Zeilen mit Farben; er bekommt den Zustand als JSON auf der Standardeingabe.
setting-ui-images = Protokoll für Bilder: das, welches das Terminal meldet, keines (eine Zeile beschreibt sie) oder dieses.
setting-ui-glyphs = Zeichen vor Dokumenten: aus jeder Schrift oder aus einer Nerd Font, die dein Terminal dann verwenden muss.
setting-ui-vim = Entwürfe mit Vim-Tasten bearbeiten.
setting-sandbox-command-wait = So lange wartet ein Modell auf einen Befehl, bevor er im Hintergrund weiterläuft, wenn der Befehl nichts anderes angibt.
setting-sandbox-command-limit = Höchstdauer eines Befehls. Einer, der im Hintergrund gestartet wurde, läuft bis zum Ende der Sitzung.
setting-sandbox-environment = Variablen, die Befehle eines Modells bekommen, neben PATH, HOME, LANG und dergleichen; nicht für Schlüssel.
setting-context-hidden = Gitignore-Muster für Dateien, die kein Werkzeug sieht, neben Geheimnissen wie .env; "!.env.example" zeigt eine, "~/notes" liegt im Home-Ordner.
setting-lint = Prüfprogramm für eine Sprache, etwa "cargo clippy --message-format=json" für rust. cargo check, tsc, eslint, ruff und go vet brauchen keinen Eintrag.
setting-mcp-command = Programm, das gestartet wird; es läuft in der Sandbox.
setting-mcp-args = Argumente des Programms.
setting-mcp-env = Variablen für das Programm, neben PATH, HOME und dergleichen; `${"{"}NAME{"}"}` ist eine deiner Variablen.
setting-mcp-url = Adresse eines Servers, der stattdessen über HTTP erreicht wird.
setting-mcp-headers = Zusätzliche Header jeder Anfrage an ihn; `${"{"}NAME{"}"}` ist eine deiner Variablen. Die Werte bleiben geheim.
setting-mcp-network = Dem Programm Netzzugang geben.
setting-mcp-folders = Ordner, in die das Programm schreiben darf: "." ist der Arbeitsordner, "~/notes" liegt im Home-Ordner. Sonst schreibt es nirgends.
setting-mcp-enabled = Den Server verwenden.
setting-mcp-timeout = Höchstdauer eines Aufrufs, die Fortschritt nicht verlängert; 0s: eine Minute ohne Fortschritt, zehn Minuten insgesamt.
setting-mcp-disabled-tools = Namen seiner Werkzeuge, die nicht angeboten werden.
setting-mcp-client-id = Client-ID, die du beim Anmeldeserver des Servers registriert hast, für `sheaf mcp login`.
setting-mcp-client-secret = Das Secret dazu, falls es eines gibt. In einer Datei nur, wenn niemand sonst sie lesen kann.
setting-mcp-client-key-file = Datei mit dem privaten Schlüssel dazu (PKCS #8 als PEM, ES256 oder RS256), statt eines Secrets.
setting-mcp-sign-in = Art der Anmeldung: dein Browser oder Client Credentials (die ID mit ihrem Secret oder Schlüssel).
setting-lsp-command = Programm, das gestartet wird; es läuft in der Sandbox, ohne Netz, und schreibt nichts.
setting-lsp-extensions = Endungen der Dateien, für die er zuständig ist: ".lua".
setting-lsp-root-markers = Namen von Dateien, an denen die Wurzel eines Projekts erkannt wird, wo er startet; ohne sie startet er im Arbeitsordner.
setting-lsp-initialization = Der Eintrag initializationOptions als JSON.
setting-lsp-env = Variablen für das Programm, neben PATH, HOME und dergleichen.
setting-commit-note = Notiz zu jedem Commit in refs/notes/sheaf: je Hunk Datei, Zeilen, Adresse, Modell und die erste Zeile deiner Nachricht; full enthält die ganze Nachricht.
setting-export-redact = Reguläre Ausdrücke für Texte, die aus einem Export entfernt werden, neben Schlüsseln; `[redacted]` ersetzt sie.
setting-serve-listen = Adresse und Port, an denen `sheaf serve` lauscht.
setting-serve-token = Token, das Clients senden müssen. Leer: Eines wird erzeugt und in einer Datei aufbewahrt, die nur du lesen kannst.
setting-serve-max-streams = Höchstzahl der Antworten, die gleichzeitig gestreamt werden.
setting-serve-allow-host = Erlaubte Hostnamen neben localhost, hinter einem Proxy.
setting-serve-allow-origin = Herkunft von Webseiten, die den Server aufrufen dürfen, etwa `https://example.com`.
setting-serve-linger = So lange läuft die Runde eines gespeicherten Gesprächs weiter, nachdem sein letzter Leser gegangen ist.
setting-serve-grace = So lange läuft ein Stream ohne gespeichertes Gespräch ohne Leser weiter, damit sein Client zurückkehren kann; 0s beendet ihn sofort.
setting-serve-tools = Werkzeuge für Clients: Dateien lesen und durchsuchen, oder alle, mit Befehlen nur in der Sandbox.
setting-serve-models = Modelle, die Clients nennen dürfen; leer: alle. Eine Anfrage ohne Modell bekommt dein voreingestelltes.
setting-serve-stateful = Gespräche speichern, sodass Clients nur neue Nachrichten senden und zu einer Antwort zurückkehren können.
setting-serve-access-log = Jede Anfrage auf der Standardfehlerausgabe protokollieren: Methode, Pfad, Status und Dauer, nichts vom Inhalt.
