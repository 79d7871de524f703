# Times of day and spans between them, in minutes.

# minutes HH:MM: since midnight
minutes() {
    h=${1%%:*} m=${1##*:}
    echo $((h * 60 + m))
}

# span FROM TO: from one time of day to another
span() {
    from=$(minutes "$1") to=$(minutes "$2")
    echo $((to - from))
}

# clock MINUTES: as H:MM
clock() {
    printf '%d:%02d\n' $(($1 / 60)) $(($1 % 60))
}
