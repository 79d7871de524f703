#!/bin/sh
# sh test/run.sh
. "$(dirname "$0")/../lib/time.sh"

good=0 bad=0
# is NAME WANTED FOUND
is() {
    if [ "$2" = "$3" ]; then
        good=$((good + 1))
        printf '\033[32mok\033[0m    %s\n' "$1"
    else
        bad=$((bad + 1))
        printf '\033[31mFAIL\033[0m  %s: wanted %s, found %s\n' "$1" "$2" "${3:-nothing}"
    fi
}

is 'midnight is 0'             0 "$(minutes 00:00)"
is 'a quarter past ten'      615 "$(minutes 10:15)"
is 'a quarter to nine'       525 "$(minutes 08:45)"
is 'nine past nine'          549 "$(minutes 09:09)"
is 'a morning'               135 "$(span 10:15 12:30)"
is 'minutes have two digits' 2:05 "$(clock 125)"

printf '%s good, %s bad\n' "$good" "$bad"
[ "$bad" = 0 ]
