#!/bin/sh
# Every minute of the day there and back. Slow on purpose: there is time to stop it.
. "$(dirname "$0")/../lib/time.sh"

echo "soak: process $$"
hour=0
while [ "$hour" -lt 24 ]; do
    minute=0
    while [ "$minute" -lt 60 ]; do
        wanted=$(printf '%d:%02d' "$hour" "$minute")
        [ "$(clock $((hour * 60 + minute)))" = "$wanted" ] || { echo "wrong at $wanted"; exit 1; }
        minute=$((minute + 1))
    done
    echo "hour $hour is sound"
    sleep 0.4 2>/dev/null || sleep 1
    hour=$((hour + 1))
done
echo 'the whole day is sound'
