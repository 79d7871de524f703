# Was die Oberfläche auf Deutsch sagt. Was hier fehlt, erscheint auf Englisch; ein Test hält beide Dateien gleich vollständig.

## Die Linie über dem Entwurf

composer-placeholder = Fragen, planen, bauen.  / Befehle
composer-unseen = { $count } neu ↓
composer-shell = läuft in der Sandbox
composer-shell-silent = läuft in der Sandbox, das Modell erfährt nichts
composer-search = /{ $pattern }  { $place } von { $count }
composer-filter = nur { $filter }
composer-unstored = nicht gespeichert
composer-read-only = nur lesend
composer-queued = { $count } eingereiht
composer-waiting = wartet auf dich
composer-retry = neuer Versuch in { $time }
composer-retrying = { $because }; neuer Versuch in { $time } ({ $attempt } von { $of })
composer-connecting = verbinde mit { $peer }
composer-first-word = warte auf das erste Wort
composer-silent = seit { $time } still
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

## Schlichte Zeilen: eine Erlaubnis

plain-to-the-letter = Zeichen für Zeichen:

## Dokumente

key-send = senden
key-back = zurück
key-retry = nochmal
document-broken-off = abgebrochen
document-cut = gekürzt
document-hidden = … noch { $size }: y kopiert alles
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
edit-nothing = ändert nichts
edit-empty = eine leere Datei
edit-cell = Zelle { $number }
edit-new-cell = neue Zelle { $number }
edit-hunk = { $place } von { $count }
edit-line = @ Zeile { $line }
edit-further = @ weitere Änderung

## Aufrufe von Tools und Befehle

call-no-json = Argumente, die kein JSON sind:
call-failed = Fehler
call-no-result = kein Ergebnis
call-step = Schritt { $number }
call-step-tool = Schritt { $number }: { $tool }
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
command-killed = gestoppt
command-folder = in { $folder }
command-network = Netz
command-no-network = kein Netz
command-no-sandbox = ohne Sandbox

## Pläne und ihre Todos

plan-word = Plan
plan-untitled = ohne Titel
plan-key-build = umsetzen
plan-key-edit = ändern
plan-key-save = speichern
plan-key-comment = Kommentar
plan-key-todos = Todos
plan-key-tick = abhaken
plan-key-reword = umformulieren
plan-key-insert = einfügen
plan-key-remove = löschen
plan-key-move = schieben
todo-word = Todo
todo-after = nach { $places }
todo-progress = { $done } von { $count }
todo-unchanged = nichts geändert

## Fragen und Erlaubnisse

question-answered = beantwortet
question-skipped = übersprungen
question-cancelled = abgebrochen
question-waiting = wartet
question-unanswered = unbeantwortet
question-answer = Antwort:
question-other = anderes:
question-more-other = , anderes:
question-key-answer = antworten…
question-key-other = anderes…
question-key-done = fertig
question-key-skip = überspringen
approval-allow = erlauben
approval-create = anlegen:
approval-edit = ändern:
approval-delete = löschen:
approval-rename = umbenennen:
approval-mode = in den Modus { $mode } wechseln
approval-needs = braucht
approval-needs-names = braucht { $names }
permission-network = Netz
permission-git-write = Schreiben in .git
permission-all = alles
approval-together = { $at } von { $count }, die zusammen geschrieben werden; ein Nein zu einer ist eins zu allen, es sei denn, Stellen waren schon ausgewählt
approval-folder = im Ordner
approval-reach = erreicht
approval-write = schreibt
approval-rule = immer heißt
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
approval-key-session = diese Sitzung
approval-key-always = immer
approval-key-no = nein
approval-key-no-because = nein, weil…
approval-no-because = nein, weil:

## Wie eine Antwort endete

ending-stopped = angehalten
ending-requests = angehalten: mehr Anfragen sind in einer Runde nicht erlaubt; mit „weiter“ geht es weiter
ending-length = die Antwort ist so lang, wie das Modell schreiben darf; mit „weiter“ geht es weiter
ending-refused = das Modell will nicht weitermachen
ending-failed = die Antwort ist fehlgeschlagen
ending-broke-off = die Übertragung brach ab; was ankam, bleibt
ending-other = beendet: { $word }

## Fehler und was man tun kann

error-word = Fehler
error-without-message = fehlgeschlagen, ohne zu sagen, warum
error-step-file-not-found = Prüfe den Pfad.
error-step-file-exists = Wähle einen anderen Namen oder lass die Datei ändern.
error-step-permission-denied = Prüfe die Rechte der Datei oder ihres Ordners.
error-step-path-outside-workspace = Starte sheaf mit --workspace in einem Ordner, der die Datei enthält.
error-step-ignored-file = Eine Ignore-Datei hält sie vom Modell fern; ändere sie, wenn es sie sehen darf.
error-step-edit-no-match = Die Datei ist nicht so, wie das Modell meint; lass es sie noch einmal lesen.
error-step-edit-ambiguous = Verlange eine Änderung mit mehr Zeilen rundherum.
error-step-edit-stale = Das Modell muss die Datei lesen, wie sie jetzt ist.
error-step-command-failed-to-start = Prüfe, ob das Programm installiert ist und im Pfad liegt.
error-step-command-timeout = Lass es im Hintergrund laufen oder gib ihm mehr Zeit.
error-step-tool-unknown = Das Modell nannte ein Tool, das es nicht gibt; das weiß es jetzt.
error-step-tool-arguments-invalid = Dem Modell wurde gesagt, was an den Argumenten falsch war.
error-step-tool-forbidden-in-mode = Shift+Tab wechselt den Modus.
error-step-tool-failed = Das Modell hat die Meldung gesehen.
error-step-llm-auth = Prüfe den Schlüssel des Anbieters; sheaf doctor sagt, welcher gilt.
error-step-llm-rate-limited = Warte einen Moment.
error-step-llm-overloaded = Der Anbieter hat zu viel zu tun.
error-step-llm-context-length = Beginne ein neues Gespräch oder nimm ein Modell mit größerem Fenster.
error-step-llm-refusal = Frag mit anderen Worten.
error-step-llm-bad-response = Der Anbieter schickte, was niemand lesen kann.
error-step-llm-unavailable = Prüfe, ob der Server des Modells läuft; sheaf doctor sucht ihn.
error-step-stream-interrupted = Was ankam, bleibt.
error-step-stream-protocol = Der Server schickt nicht, was ein Gateway schickt; prüfe seine Adresse.
error-step-unauthorized = Prüfe das Token des Gateways (SHEAF_TOKEN); sheaf doctor sagt, welches gilt.
error-step-rate-limited = Warte einen Moment.
error-step-max-turns = Mit „weiter“ geht es weiter.

## Die Kopfzeile

header-tokens = { $count } Token
header-sandbox-full = volle Sandbox
header-sandbox-partial = Sandbox teilweise
header-sandbox-partial-but = Sandbox teilweise ({ $but })
header-sandbox-none = OHNE SANDBOX

## Was gezeigt, gefunden und eingereiht ist

filter-everything = alles
filter-text = was gesagt wurde
filter-edits = Änderungen an Dateien
filter-commands = was ausgeführt wurde
filter-calls = andere Tools
filter-code = Code und Zitate
filter-plans = Pläne und ihre Todos
filter-questions = Fragen und Freigaben
filter-errors = Fehler
filter-failed = Fehler und was fehlgeschlagen ist
filter-waiting = Fragen, die auf dich warten
filter-running = was noch läuft
filter-nothing = hier ist nichts mit { $filter }; esc zeigt alles
search-first = erst mit / suchen
search-from-beginning = weiter vom Anfang
search-from-end = weiter vom Ende
search-nothing = „{ $pattern }“ steht nirgends
mention-documents = Dokumente
mention-files = Dateien
mention-files-and-code = Dateien, Funktionen und Typen
image-sized = Bild { $size } { $kind }, { $bytes }
image-unsized = Bild { $kind }, { $bytes }
queue-next = gleich
queue-queued = danach
queue-more = (und { $count } mehr)
inline-earlier = … früher: /print schreibt alles
view-too-small = sheaf: das Terminal ist zu klein

## Hinweise des Terminals

attention-finished = sheaf ist fertig: { $about }
attention-asks = sheaf hat eine Frage: { $about }

## Das Gespräch in Zeilen (--plain)
#
# Was getippt wird, bleibt: Buchstaben, Zahlen, s, enter, up, down, tab, Befehle.

plain-note = Hinweis: { $text }
plain-begin = sheaf { $version }, { $who }, in { $folder }
plain-earlier = { $count ->
    [one] { $count } frühere Runde; /print liest sie ganz vor, und eine Zeile wie { $example } ein Dokument
   *[other] { $count } frühere Runden; /print liest alle vor, und eine Zeile wie { $example } ein Dokument
}
plain-other = ein anderes Gespräch, { $who }
plain-editor = ein Editor braucht das Terminal; dafür sheaf ohne --plain starten
plain-branch = das Gespräch geht an einer früheren Stelle weiter; was danach kam, liegt auf einem Zweig, /branches
plain-plan-waits = der Plan wartet: /build führt ihn aus, und Worte sagen, was anders sein soll
plain-your-turn = du bist dran, Modus { $mode }
plain-input-ended = die Eingabe ist zu Ende, und niemand beantwortet das
plain-pasted = { $count ->
    [one] { NUMBER($count) } Zeile eingefügt; die nächste beendet sie, eine leere schickt sie, wie sie ist
   *[other] { NUMBER($count) } Zeilen eingefügt; die nächste beendet sie, eine leere schickt sie, wie sie sind
}
plain-turn = Runde { $address }
plain-message = { $address } Nachricht
plain-waiting = { $label }, wartet
plain-working = arbeitet, { $seconds } s
plain-working-on = arbeitet, { $seconds } s, { $what }
plain-entries = die Liste hat { $count } Einträge
plain-hunks = von { $count } Stellen sind im Review { $accepted } angenommen und { $rejected } ausgelassen; /review macht weiter, n lässt alle aus
plain-letters = schreib y, n oder einen anderen der Buchstaben
plain-how-keys = jeder Buchstabe einer Zeile ist hier eine Taste; enter, up, down und tab sind Wörter; eine leere Zeile schließt
plain-how-picker = schreib eine Zahl; andere Wörter engen die Liste ein; eine leere Zeile schließt sie
plain-how-prompt = schreib die Zeile; eine leere schließt
plain-how-answer = schreib die Antwort; s überspringt
plain-how-number = schreib eine Zahl; s überspringt
plain-how-number-or-words = schreib eine Zahl oder andere Worte; s überspringt
plain-how-numbers = schreib eine oder mehrere Zahlen; s überspringt
plain-how-numbers-or-words = schreib eine oder mehrere Zahlen oder andere Worte; s überspringt
plain-number-to = schreib eine Zahl von 1 bis { $count }; s überspringt
plain-options = die Möglichkeiten sind 1 bis { $count }
plain-only-one = nur eine davon kann gewählt werden
plain-question = Frage: { $text }
plain-question-of = Frage { $place } von { $count }: { $text }
plain-word-always = immer
plain-word-no = nein
plain-word-yes = ja
plain-yes-once = ja, dieses Mal
plain-yes-session = ja, für diese Sitzung
plain-yes-always = ja, immer
plain-no = nein; ein Grund darf dahinter stehen
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

## Einstellungen, die nicht gelten können

problem-language = ui.language: die Sprache „{ $language }“ gibt es nicht; es gibt { $known } und Dateien in { $folder }

## Was man tun kann

# `hint-` sind ein bis drei Wörter für Fußzeile und Palette, `about-` ist eine Zeile für Hilfe und Palette; dahinter der Name
# der Aktion, ein Bindestrich für jeden Punkt. Was in Backquotes steht, wird so getippt.

hint-branches = Branches
about-branches = den Baum des Gesprächs zeigen und zu einem anderen Branch gehen
hint-branch = hier abzweigen
about-branch = hinter dem gewählten Dokument oder mit `/branch 7.3` weitermachen, auf einem eigenen Branch
hint-reword = umformulieren
about-reword = die gewählte oder letzte Nachricht, oder mit `/reword 7` eine andere, neu schreiben: was ihr folgte, bleibt auf seinem Branch
hint-again = noch einmal
about-again = den gewählten Aufruf noch einmal machen oder die gewählte Frage anders beantworten, auch mit `/again 7.3`, auf einem eigenen Branch
hint-conversation-new = neu
about-conversation-new = ein neues Gespräch beginnen; dieses bleibt erhalten
hint-conversation-clear = neu
about-conversation-clear = dasselbe wie /new
hint-conversation-resume = Gespräche
about-conversation-resume = ein gespeichertes Gespräch fortsetzen: zu finden über seinen Titel oder was darin gesagt wurde
hint-conversation-export = exportieren
about-conversation-export = das Gespräch in eine Datei schreiben: `/export talk.html`, `.md`, `.json` oder `.jsonl`
hint-conversation-cost = Kosten
about-conversation-cost = zeigen, was jede Runde gekostet hat: Token, Zeit, Dollar, wo der Preis bekannt ist
hint-conversation-compact = verdichten
about-conversation-compact = das Gesagte durch eine Zusammenfassung ersetzen, damit das Modell wieder Platz hat: `/compact was nicht verloren gehen darf`
hint-conversation-rename = umbenennen
about-conversation-rename = dem Gespräch einen anderen Titel geben: `/rename Rabattcodes`; ab dann ändert ihn kein Programm mehr
hint-conversation-drop = weglassen
about-conversation-drop = dem Modell das Ergebnis eines Aufrufs wegnehmen: `/drop 7.3`; hier bleibt es lesbar
hint-copy = kopieren
about-copy = das Dokument ohne Ränder kopieren; `/copy` nimmt die letzte Antwort, `/copy markdown|plain|code` eine Form, `all` alles Sichtbare, `7.3` ein Dokument
hint-print = ausgeben
about-print = das Sichtbare in die Zeilen des Terminals schreiben, wo es bleibt, wenn sheaf beendet ist
hint-copy-code = Code kopieren
about-copy-code = nur den Code des Dokuments kopieren
hint-copy-as = kopieren als
about-copy-as = als Markdown, als Text oder nur den Code kopieren; das Dokument oder alles Sichtbare
hint-mode-next = Modus
about-mode-next = zum nächsten Modus: agent, plan, ask, debug
hint-mode = Modus
about-mode = einen Modus wählen, oder `/mode plan`
hint-model = Modell
about-model = das Modell wählen, oder `/model NAME`
hint-effort = Aufwand
about-effort = wie gründlich das Modell denkt: `/effort high`, medium, low oder off, `auto` wie eingestellt
hint-theme = Farben
about-theme = die Farben wählen, oder `/theme NAME`
hint-palette = Palette
about-palette = alles finden, was man tun kann
hint-mouse = Maus
about-mouse = was die Maus hier tut: `/mouse full` markiert und wählt, `wheel` scrollt nur, `off` überlässt sie dem Terminal
hint-problems = Probleme
about-problems = zeigen, was an den Einstellungen nicht stimmt
hint-context = Kontext
about-context = zeigen, was dem Modell gesagt wird und was jeder Teil kostet
hint-inspect = Inspektor
about-inspect = zeigen, was ankam, Byte für Byte, neben den Dokumenten, die daraus wurden
hint-trust = Vertrauen
about-trust = fragen lassen, ob Regeln, Einstellungen und Prüfer dieses Ordners gelten dürfen
hint-sandbox = Sandbox
about-sandbox = zeigen, was Befehle einschließt; wo das lückenhaft ist, dürfen sie mit `guard` in den ganzen Workspace schreiben und Geschütztes wird zurückgelegt, mit `strict` nicht
hint-permissions = Rechte
about-permissions = zeigen, was ohne Frage läuft und was nie; `reset` nimmt zurück, was für diese Sitzung erlaubt wurde
hint-help = Tasten
about-help = dasselbe wie /keys
hint-keys = Tasten
about-keys = alle Tasten und Befehle zeigen
hint-focus = Verlauf
about-focus = von der Eingabe zum Verlauf und zurück; zuerst zu einer Frage, die wartet
hint-escape = stoppen
about-escape = Offenes schließen, eine Suche beenden, alles wieder zeigen; sonst zurück zur Eingabe; sonst die Antwort stoppen; noch einmal, ohne Entwurf: zurückgehen
hint-interrupt = stoppen
about-interrupt = Markiertes kopieren; sonst die Antwort stoppen; sonst den Entwurf leeren; zweimal beendet
hint-leave = beenden
about-leave = beenden, wenn nichts geschrieben ist; sonst den Buchstaben hinter dem Cursor wegnehmen
hint-quit = beenden
about-quit = beenden
hint-suspend = anhalten
about-suspend = zurück zur Shell; `fg` kommt wieder her
hint-redraw = neu zeichnen
about-redraw = den Bildschirm neu zeichnen
hint-panic = Panik
about-panic = abstürzen, um zu sehen, dass das Terminal zurückgegeben wird (nur mit SHEAF_DEV=1)
hint-search = suchen
about-search = das Gespräch durchsuchen; kleine Buchstaben meinen beide
hint-search-next = nächster Treffer
about-search-next = zur nächsten Stelle, die die Suche gefunden hat
hint-search-previous = voriger Treffer
about-search-previous = zur vorigen Stelle, die die Suche gefunden hat
hint-filter = Filter
about-filter = nur Änderungen, Befehle, Fehler … zeigen, oder `/filter failed path:src/** Wörter`; esc zeigt wieder alles
hint-outline = Gliederung
about-outline = alle Nachrichten und Dokumente auflisten; das Gespräch folgt, wenn man sich darin bewegt
hint-times = Zeiten
about-times = zeigen, wann jedes Dokument begann und wie lange es dauerte
hint-plan-build = umsetzen
about-plan-build = den Plan umsetzen: in den Modus agent wechseln und es sagen
hint-plan-save = speichern
about-plan-save = den Plan unter .cursor/plans speichern
hint-plan-comment = Kommentar
about-plan-comment = sagen, was anders sein soll, und weiter planen
hint-plan-edit = ändern
about-plan-edit = den Plan und seine Todos in $VISUAL oder $EDITOR ändern
hint-todo-next = Todo
about-todo-next = zum nächsten Todo des Plans, dann weiter zum nächsten Dokument
hint-todo-previous = Todo
about-todo-previous = zum vorigen Todo, dann zum vorigen Dokument
hint-todo-toggle = abhaken
about-todo-toggle = das Todo abhaken oder den Haken wegnehmen
hint-todo-remove = entfernen
about-todo-remove = das Todo aus dem Plan nehmen
hint-todo-down = runter
about-todo-down = das Todo nach unten schieben
hint-todo-up = hoch
about-todo-up = das Todo nach oben schieben
hint-todo-insert = einfügen
about-todo-insert = ein neues Todo hinter diesem schreiben
hint-todo-reword = umformulieren
about-todo-reword = das Todo anders formulieren; auf dem Plan selbst: einklappen
hint-next = nächstes
about-next = zum nächsten Dokument
hint-previous = voriges
about-previous = zum vorigen Dokument
hint-turn-next = nächste Runde
about-turn-next = zu deiner nächsten Nachricht
hint-turn-previous = vorige Runde
about-turn-previous = zu deiner vorigen Nachricht
hint-next-edit = nächste Änderung
about-next-edit = zur nächsten Änderung einer Datei
hint-previous-edit = vorige Änderung
about-previous-edit = zur vorigen Änderung einer Datei
hint-next-error = nächster Fehler
about-next-error = zum nächsten Fehler, fehlgeschlagenen Aufruf oder Befehl
hint-previous-error = voriger Fehler
about-previous-error = zum vorigen Fehler, fehlgeschlagenen Aufruf oder Befehl
hint-next-question = nächste Frage
about-next-question = zur Frage, die wartet
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
about-bottom = ans Ende gehen und ihm folgen
hint-fold = klappen
about-fold = das Dokument ein- oder ausklappen
hint-fold-all = alle klappen
about-fold-all = jedes Dokument auf seine Zeile einklappen oder alle wieder wie sonst zeigen
hint-fold-kind = Art klappen
about-fold-kind = alle Dokumente dieser Art ein- oder ausklappen
hint-reasoning = Gedanken
about-reasoning = zeigen oder einklappen, was das Modell gedacht hat
hint-open = öffnen
about-open = die Datei des Dokuments, oder eine der darin genannten, in $VISUAL oder $EDITOR öffnen
hint-review = Review
about-review = alle Änderungen der Runde oder des Gesprächs ansehen und jede annehmen oder ablehnen
hint-act = Review
about-act = auf einer Änderung: Review; auf einem Fehler: noch einmal versuchen
hint-undo = zurücknehmen
about-undo = zurücknehmen, was die letzte Runde an Dateien geändert hat, `/undo 7` eine Runde, `/undo 7.3` ein Dokument
hint-redo = wiederholen
about-redo = das zuletzt Zurückgenommene wiederholen, `/redo 7.3` das eines Dokuments
hint-undo-this = dies zurücknehmen
about-undo-this = zurücknehmen oder wiederholen, was das gewählte Dokument an Dateien geändert hat
hint-rewind = zurückgehen
about-rewind = vor eine Nachricht zurückgehen: Dateien, Gespräch oder beides, oder `/rewind 7`
hint-send = senden
about-send = die Nachricht senden; während eine Antwort kommt, wird sie beim nächsten Schritt gehört oder wartet, wo das nicht geht, bis sie dran ist; ein Backslash vor dem Cursor bricht die Zeile um
hint-queue = neue Zeile
about-queue = die Zeile umbrechen; während eine Antwort kommt: die Nachricht dahinter einreihen
hint-newline = neue Zeile
about-newline = die Zeile umbrechen
hint-clear = leeren
about-clear = den Entwurf leeren; up holt ihn zurück
hint-editor = Editor
about-editor = den Entwurf, oder den eingefügten Text am Cursor, in $VISUAL oder $EDITOR schreiben
hint-history = Gesendetes
about-history = finden, was früher gesendet wurde, in jedem Workspace
hint-picture = Bild
about-picture = das Bild der Zwischenablage in den Entwurf legen; ein eingefügter oder hergezogener Pfad tut dasselbe
hint-chip = Eingefügtes
about-chip = eingefügten Text oder ein Bild am Cursor ansehen, ausklappen, ändern oder entfernen
hint-queued = Warteschlange
about-queued = wartende Nachrichten ändern, umordnen oder zurücknehmen
hint-vim = Vim
about-vim = Entwürfe wie in Vim bearbeiten, oder wieder wie sonst

## Antworten auf das, was getan wurde

action-still-coming = die Antwort kommt noch; esc stoppt sie
action-no-message = es gibt keine Nachricht, die man noch einmal senden kann
action-no-plan-to-build = es gibt keinen Plan zum Umsetzen
action-no-plan-to-save = es gibt keinen Plan zu speichern
action-choose-a-todo = wähle zuerst mit den Pfeilen ein Todo
action-newer-plan = es gibt einen neueren Plan; dieser bleibt, wie er war
action-rename-how = sag, wie es heißt: `/rename Rabattcodes`
action-drop-which = sag, welches: `/drop 7.3`
action-no-address = { $word } ist keine Adresse wie 7.3
action-nothing-said = noch wurde nichts gesagt
action-is-new = dieses Gespräch ist neu
action-at-work = es wird noch gearbeitet: esc stoppt es
action-no-document = kein Dokument ist gewählt: tab geht zu ihnen
action-no-turn = { $word } ist keine Runde wie 7
action-answering = eine Antwort entsteht gerade: esc stoppt sie
action-neither-turn-nor-address = { $word } ist weder eine Runde wie 7 noch eine Adresse wie 7.3
action-no-such-document = es gibt kein Dokument { $word }
action-redo-how = eine Runde wiederholt /redo allein, ein Dokument /redo 7.3
action-no-chip = am Cursor ist nichts Eingefügtes
action-no-message-waits = keine Nachricht wartet
action-vim-on = Entwürfe werden wie in Vim bearbeitet; esc für seine Befehle
action-vim-off = Entwürfe werden wie sonst bearbeitet
action-no-command = es gibt keinen Befehl /{ $word }; /help listet sie; ein Leerzeichen vor dem / sendet ihn als Text
action-no-command-near = Befehl /{ $word } unbekannt (meintest du /{ $near }?)
action-run-how = ! führt den Befehl dahinter in der Sandbox aus; !! verschweigt ihn dem Modell
action-runs-nothing = { $peer } führt keine Befehle von dir aus; der eigene Agent von sheaf tut es
action-run-later = ein Befehl wartet, bis die Antwort vorbei ist; esc stoppt sie
action-again-stands = die Änderung besteht schon: zuerst /undo { $address }
action-again-what = nur Aufrufe und Fragen gehen noch einmal; /branch macht hinter allem weiter
action-which-document = welches? 7.3 ist Dokument 3 der Runde 7; tab und f3 tun es mit dem gewählten
action-not-here = { $word } gibt es nicht auf diesem Branch
action-makes-no-calls = { $peer } macht keine Aufrufe von dir; der eigene Agent von sheaf tut es
action-not-allowed-here = hier lässt es sich nicht erlauben; esc geht zurück zur Frage
action-no-file-changed = keine Datei wurde geändert
action-change-whole = wer fragt, nimmt diese Änderung ganz oder gar nicht; bearbeiten kannst du sie, wenn sie geschrieben ist
action-decided-by-hunks = über Stellen dieser Änderung ist schon entschieden: /review (ctrl+e) macht dort weiter
action-others-by-hunks = über Stellen einer wartenden Änderung ist schon entschieden: y erlaubt nur diese hier, /review (ctrl+e) macht dort weiter
action-answered-meanwhile = die Antwort ist inzwischen gegeben: was du geschrieben hast, steht im Entwurf
action-hunk-unchanged = nichts ist geändert: die Stelle wartet wie zuvor
action-hunk-comment = was hier anders sein soll
action-rejected-already = es ist schon abgelehnt
action-nothing-to-print = es gibt nichts auszugeben
action-printed = es steht in den Zeilen des Terminals, über dem Start von sheaf
action-copy-how = { $word } lässt sich nicht kopieren; sag markdown, plain oder code, dazu all oder die Nummer eines Dokuments
action-no-code = darin ist kein Code
action-nothing-to-copy = nichts zu kopieren
action-no-mode = den Modus { $word } gibt es nicht; die Modi sind agent, plan, ask und debug
action-asking-for-models = frage nach den Modellen …
action-model-chosen = die nächste Antwort kommt von { $model }
action-effort-deaf = { $peer } entscheidet selbst, wie gründlich gedacht wird
action-effort-chosen = ab der nächsten Nachricht denkt das Modell mit Aufwand { $effort }
action-effort-auto = ab der nächsten Nachricht denkt das Modell so gründlich wie eingestellt
action-no-effort = den Aufwand { $word } gibt es nicht; es gibt auto, { $known }
action-no-theme = die Farben { $word } gibt es nicht; es gibt auto, { $known }
action-no-mouse = { $word } kann die Maus nicht sein; sie ist full, wheel oder off
action-mouse-full = Maus: scrollt, wählt, markiert zum Kopieren
action-mouse-wheel = Maus: scrollt; Shift markiert, wie das Terminal es tut
action-mouse-off = Maus: aus; sie gehört dem Terminal
action-no-problems = mit den Einstellungen ist alles in Ordnung
action-counting = zähle …
action-sandbox-how = /sandbox zeigt, was Befehle einschließt; dahinter kann guard oder strict stehen
action-permissions-how = /permissions zeigt, was ohne Frage läuft; dahinter kann reset stehen
action-looking = schaue nach …
action-quit-how = noch einmal ctrl+c beendet
action-no-panic = den Befehl /panic gibt es nicht
action-nothing-to-read = noch nichts zu lesen
action-no-question = keine Frage wartet
action-select-first = wähle zuerst ein Dokument
action-names-no-file = dieses Dokument nennt keine Datei
action-no-more-below = weiter unten nichts mehr
action-no-more-above = weiter oben nichts mehr
action-from-the-top = unten keine mehr: von oben
action-from-the-bottom = oben keine mehr: von unten
action-only-this = es gibt nur das hier
action-none-of-these = davon gibt es nichts
action-click-again = noch ein Klick öffnet { $path }

## Was kopiert wurde, im Satz

copied-conversation = das Gespräch
copied-last-answer = die letzte Antwort
copied-reasoning = die Gedanken
copied-selection = das Markierte
copied-what-came = was ankam
copied-curl = die Anfrage als curl
copied-resume = was es in { $folder } fortsetzt
copied-characters = { NUMBER($count) } { $count ->
    [one] Zeichen
   *[other] Zeichen
}

## Eine Zeile, die man schreibt

prompt-new-todo = neues Todo
prompt-todo = Todo
prompt-search = suchen

## Was in den Entwurf gestellt wird

draft-about-plan = Zum Plan „{ $title }“:

## Der Baum der Branches

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
inspector-nothing-yet = noch ist nichts gekommen
inspector-steps = { $count } Schritte
inspector-steps-gone = { $count } Schritte, die ersten { $gone } sind fort
inspector-too-much = die Anfrage hat { $size }, zu viel zum Kopieren
inspector-no-request = es ging keine Anfrage hinaus: wer antwortet, ist in diesem Programm
inspector-body-too-large = der Body ist zu groß, um aufbewahrt zu werden
inspector-when = Schritt { $step } · { $clock } · nach { $since }
inspector-when-after = Schritt { $step } · { $clock } · +{ $gap } · nach { $since }
inspector-came = gekommen, { $size }
inspector-came-whole = am Stück gekommen, { $size }
inspector-made-here = hier entstanden
inspector-more = … noch { $size }
inspector-before = … { $size } davor
inspector-made-nothing = daraus wurde nichts
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

## Listen zum Wählen

list-nothing = nichts dergleichen
list-chosen-now = jetzt gewählt
list-mode = Modus
list-effort = Aufwand
list-model = Modell
list-theme = Farben
list-show-only = nur zeigen
list-sent-before = früher gesendet
list-pasted = Eingefügtes
list-copy-as = kopieren als
list-open = öffnen
list-do = Aktionen
list-commands = Befehle
list-and = { $first } und { $last }
mode-about-agent = liest, ändert und führt aus
mode-about-plan = liest, fragt und schreibt einen Plan
mode-about-ask = liest und antwortet
mode-about-debug = findet die Ursache eines Fehlers und behebt ihn
effort-about-auto = wie eingestellt
effort-about-off = wo sich das dem Modell sagen lässt
theme-about-auto = nach dem Hintergrund des Terminals
sandbox-about-guard = Befehle dürfen in den ganzen Workspace schreiben; Geschütztes wird zurückgelegt
sandbox-about-strict = nichts Neues ganz oben im Workspace
chip-view = ansehen
chip-about-view = lesen
chip-unfold = ausklappen
chip-about-unfold = in den Entwurf
chip-edit = ändern
chip-about-edit = in $VISUAL oder $EDITOR
chip-remove = entfernen
chip-about-remove = wegnehmen
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
list-terms = enter zeigt, was passt, wie exit!=0 path:src/** Wörter

## Das Review

review-title = Review
review-this-turn = diese Runde
review-everything = das ganze Gespräch
review-facts = { $at } von { $count }   { $accepted } angenommen   { $rejected } abgelehnt
review-facts-short = { $at } von { $count }  ✓ { $accepted }  ✗ { $rejected }
review-rejected = ✗ abgelehnt
review-failed = ✗ fehlgeschlagen
review-not-written-yet = ◐ noch nicht geschrieben
review-accepted = ✓ angenommen
review-applied = ○ angewandt
review-hunk = Stelle { $at } von { $count }
review-accepted-edited = ✓ angenommen, geändert
review-left-out = ✗ ausgelassen
review-too-soon = zu schnell nach der letzten: noch einmal drücken
review-you-say = du sagst: { $comment }

## Zurückgehen

rewind-title = Zurück
rewind-to = vor eine Nachricht
rewind-place = { $at } von { $count }
rewind-no-file = keine Datei würde zurückgehen
rewind-undone = zurückgenommen
rewind-nothing-changed = seither wurde keine Datei geändert
rewind-going = { $going } von { NUMBER($count) } { $count ->
    [one] Datei
   *[other] Dateien
} zurück
rewind-over = später Geändertes geht verloren
rewind-over-key = (o behält es)
rewind-not-over = später Geändertes bleibt
rewind-not-over-key = (o nimmt es mit zurück)
rewind-partial = die ältesten Änderungen sind nicht mehr aufbewahrt
rewind-in-all = … insgesamt { $count }
rewind-lost = nicht aufbewahrt
rewind-stays = bleibt
rewind-changed-since = später geändert
rewind-changed-in = geändert in { $turn }
rewind-comes-back = kommt zurück
rewind-goes = geht weg
rewind-mode = Rechte

## Gespeicherte Gespräche

sessions-title = Gespräche
sessions-none = noch ist kein Gespräch gespeichert
sessions-none-here = in diesem Ordner nichts dergleichen: tab sucht überall
sessions-everywhere = überall
sessions-everywhere-archived = überall, auch archivierte
sessions-here = dieser Ordner
sessions-here-archived = dieser Ordner, auch archivierte
sessions-facts = { $scope }  { $at } von { $count }
sessions-doomed = noch einmal ctrl+d entfernt es endgültig
sessions-untitled = (nichts gesagt)
sessions-archived = archiviert
sessions-turns = { $place }  { $count } { $count ->
    [one] Runde
   *[other] Runden
}
ago-now = jetzt
ago-minutes = vor { $count } min
ago-hours = vor { $count } h
ago-days = vor { $count } Tg
ago-months = vor { $count } Mon
ago-years = vor { $count } J

## Nachrichten, die warten, bis sie dran sind

waiting-title = warten, bis sie dran sind

## Die Fußzeile: was eine Taste tut, in ein, zwei Wörtern

footer-choose = wählen
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
footer-turn-or-all = Runde/alles
footer-go-there = hingehen
footer-move = bewegen
footer-reorder = ordnen
footer-forks = Abzweigungen
footer-files-and-conversation = beides
footer-files = Dateien
footer-conversation = Gespräch
footer-a-file = eine Datei
footer-leave-it = so lassen
footer-changed-since = später Geändertes
footer-take-back = zurücknehmen
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
footer-remove = entfernen
footer-done = fertig
footer-take = nehmen
footer-complete = ergänzen
footer-run = ausführen
footer-answer = antworten
footer-composer = Eingabe
footer-stop = stoppen
footer-keys = Tasten
footer-skip = überspringen
footer-build = umsetzen
footer-todos = Todos
footer-tick = abhaken
footer-reword = ändern
footer-insert = einfügen
footer-steer = mitreden
footer-queue = einreihen
footer-newline = neue Zeile
footer-transcript = Verlauf
footer-send = senden
footer-mode = Modus
footer-palette = Palette
footer-next = weiter
footer-previous = zurück
footer-end-search = Suche aus
footer-everything = alles
footer-fold = klappen
footer-plan = Plan

## Seiten zum Lesen

page-leave = esc geht zurück
page-keys = Tasten und Befehle
page-everywhere = Überall
page-in-composer = In der Eingabe
page-in-transcript = Im Verlauf (tab)
page-in-text = Wo man schreibt
page-on-plan = Auf einem Plan
page-on-question = Auf einer Frage
page-text-undo = rückgängig
page-text-redo = wiederholen
page-text-word = wortweise gehen
page-text-line = zum Anfang der Zeile, an ihr Ende
page-text-select = markieren; Getipptes ersetzt es, ctrl+c kopiert es
page-text-all = alles markieren
page-text-cut-before = das Wort davor wegnehmen
page-text-cut-after = das Wort dahinter wegnehmen, den Rest der Zeile
page-text-yank = wieder einsetzen, was weggenommen wurde
page-question-choose = wählen, oder umschalten, wo mehrere möglich sind
page-question-send = die Antworten senden
page-question-other = mit eigenen Worten antworten
page-question-skip = überspringen
page-question-approval = eine Freigabe: einmal, in dieser Sitzung, immer, nein, weil …
page-in-review = Im Review (ctrl+e)
page-review-accept = die Änderung annehmen oder schreiben lassen
page-review-reject = sie ablehnen: sie wird zurückgenommen oder nicht geschrieben
page-review-edit = sie in $VISUAL oder $EDITOR bearbeiten
page-review-comment = dem Modell sagen, was anders sein soll
page-review-step = zur nächsten Änderung, zur vorigen
page-review-file = zur nächsten Datei, zur vorigen
page-review-scroll = scrollen, bei langen Zeilen auch zur Seite
page-review-sides = alt und neu nebeneinander oder in einer Spalte
page-review-scope = die Änderungen dieser Runde oder des ganzen Gesprächs
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
permissions-run-ask = Befehle und Änderungen an Dateien fragen (approvals.run = "ask").
permissions-run-list = Befehle fragen; Dateien werden geändert, und das lässt sich zurücknehmen (approvals.run = "list").
permissions-run-sandbox = Befehle und Änderungen an Dateien laufen ohne Frage, wo die Sandbox ganz hält (approvals.run = "sandbox").
permissions-run-force = In diesem Lauf fragt nichts außer dem, was geschützt ist (--force).
permissions-doubtful = Eine Regel, die verbietet oder fragt, ist nicht lesbar: Bis sie richtig ist, fragt alles. /problems nennt sie.
permissions-deny = Nie
permissions-ask = Fragt immer
permissions-allow = Erlaubt
permissions-session = In dieser Sitzung erlaubt
permissions-none = nichts
permissions-where = Was für immer erlaubt ist, steht unter [approvals] in deiner config.toml und wird dort zurückgenommen; /permissions reset nimmt zurück, was für diese Sitzung gilt.

## Was dem Modell gesagt wird, Teil für Teil

context-system-prompt = Systemprompt
context-rule = Regel { $path }
context-servers = Anweisungen von Servern
context-tools = Tools
context-tool = Tool { $name }
context-messages = deine Nachrichten
context-answers = Antworten
context-results = Ergebnisse von Tools
context-images = Bilder
context-all = zusammen
context-appended = am Ende mit deinen Worten
context-replaced = { $count ->
    [one] { $count } Teil davon in deinen Worten
   *[other] { $count } Teile davon in deinen Worten
}
context-untrusted = nicht geladen: du hast nicht gesagt, dass du diesem Workspace vertraust
context-description = nur die Beschreibung
context-not-sent = nicht gesendet: { $when }
context-awaits-nothing = immer
context-awaits-files = erst mit passenden Dateien
context-awaits-model = erst, wenn das Modell sie verlangt
context-awaits-user = erst, wenn du sie nennst
context-tool-count = { $count ->
    [one] { $count } Tool
   *[other] { $count } Tools
}
context-not-offered = nicht angeboten: { $why }
context-switched-off = in den Einstellungen abgeschaltet
context-calls-none = laut Einstellungen ruft das Modell keine auf
context-no-search = kein Dienst ist eingestellt: setze web.search.kind
context-edit-style = agent.edit_style will es anders
context-other-models = für Modelle, die damit trainiert wurden
context-small-window = das Fenster ist klein: agent.profile = "full" bietet alle an
context-guess = geschätzt: Server rechnen verschieden
context-window = von { NUMBER($count) }
context-counted = der Server zählte { NUMBER($count) } bei der letzten Anfrage
context-unpriced = was { $model } kostet, ist hier nicht bekannt
context-unpriced-own = was das eigene Modell des Servers kostet, ist hier nicht bekannt

## Was Befehle einschließt, Wand für Wand

wall-files = Dateien
wall-processes = Prozesse
wall-network = Netz
wall-capabilities = Capabilities
wall-system-calls = Systemaufrufe
wall-kernel-files = alles außer dem Workspace und einem eigenen /tmp ist nur lesbar; Geheimnisse sind verdeckt
wall-kernel-processes = ein Befehl sieht nur seine eigenen Prozesse, schickt nur ihnen Signale und lässt keinen zurück
wall-kernel-network = ein eigenes Netz, in dem es nur das Loopback gibt
wall-kernel-capabilities = abgelegt, und kein Programm gibt sie zurück
wall-kernel-system-calls = ein Filter (seccomp) verbietet Mounts, Namespaces, Tracing, andere Sockets und fremde Eingaben
wall-seatbelt-files = Seatbelt: geschrieben wird nur im Workspace; Geheimnisse werden nicht gelesen
wall-seatbelt-processes = was die Session eines Befehls verlässt, wird danach nicht gefunden; ihre Zahl ist nicht begrenzt
wall-seatbelt-network = Seatbelt: nur das Loopback dieses Rechners
wall-landlock = Version { $version }: Dateien, Signale, abstrakte Sockets
wall-landlock-old = Version { $version }: Dateien, aber nicht Signale und abstrakte Sockets
wall-no-landlock = der Kernel hat es nicht
wall-needless = wird nicht gebraucht: sheaf macht seine Namespaces selbst
wall-note-here-only = Es gilt nur für dieses Gespräch: { $why }
wall-note-halted = Ein Befehl hat Geschütztes geändert: in diesem Gespräch fragt jeder weitere, und ganz oben im Workspace wird nichts geändert.
wall-note-guarded = In diesem Ordner gilt guard: ein Befehl, den du erlaubt hast, darf in den ganzen Workspace schreiben. Geschütztes (.git, Einstellungen von Editoren und Agenten, ignorierte Dateien) wird davor und danach verglichen und aus einer Kopie zurückgelegt; dazwischen war es geändert, und wer es dann liest, liest, was der Befehl schrieb. Objekte von git werden nicht aufbewahrt. Ändert ein Befehl Geschütztes, wird es dir gesagt, und jeder weitere fragt. Ordner mit Geheimnissen bleiben, wie sie sind. /sandbox strict beendet es.
wall-note-strict = Befehle legen ganz oben im Workspace nichts Neues an und ersetzen dort keine Datei, damit sich nichts Geschütztes ändern kann. Stört das, erlaubt es /sandbox guard in diesem Ordner und legt Geschütztes zurück.
wall-note-needless = guard ist für lückenhafte Sandboxes: hier hält der Kernel fest, was geschützt ist, und lässt den Rest frei.

## Neues rechts in der Fußzeile

inline-branched = von hier an ist es ein anderer Branch
news-copied-by-terminal = kopiert: { $what } (Terminal, OSC 52)
news-copied = kopiert: { $what } ({ $way })
news-not-copied = nicht kopiert: { $what }: { $why }
news-no-models = der Server listet keine Modelle; /model NAME nimmt jeden Namen
news-nothing-sent = früher wurde nichts gesendet
news-saved = gespeichert als { $path }
news-not-saved = { $path } ließ sich nicht schreiben: { $why }
news-written = geschrieben nach { $path }
news-other-answer = die Antwort gehört zu einer anderen Frage
news-no-picture = in der Zwischenablage ist kein Bild
news-not-remembered = Gesendetes wird nicht gemerkt: { $why }
news-alone = hier gibt es nur dieses Gespräch
news-no-picture-file = { $name } ist kein PNG, JPEG, GIF oder WebP
news-picture-too-large = { $name } ist größer als 20 MiB
news-editor-ended = { $editor } endete mit { $status }
news-editor-not-started = { $editor } ließ sich nicht starten: { $why }; setze $VISUAL oder $EDITOR
news-outside = { $path } liegt außerhalb des Workspace
news-absent = { $path } gibt es nicht
news-problems = { $count ->
    [one] die Einstellungen haben ein Problem: /problems
   *[other] die Einstellungen haben { $count } Probleme: /problems
}

## Was in den Entwurf eingefügt wurde

pasted-lines = { $count } Zeilen eingefügt
pasted-characters = { $count } Zeichen eingefügt
