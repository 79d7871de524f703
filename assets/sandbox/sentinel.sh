trap '' HUP INT TERM QUIT
mark=$1 temporary=$2 root=$3 aside=$4
shift 4
# Each is `group:list`. The number of a group that is gone may be another's: then it is `:list`.
commands=' '
forget() {
  case $commands in *" $1 "*) rest=${commands#*" $1 "} commands="${commands%%" $1 "*} $rest" ;; esac
}
while read -r word group list; do
  case $word in
    +) commands="$commands$group:$list " ;;
    =) forget "$group:$list" && [ -n "$list" ] && commands="$commands:$list " ;;
    -) forget "$group:$list" && forget ":$list" ;;
  esac
done

marked() {
  found=
  for file in $(grep -lasF "SHEAF_COMMAND=$mark." /proc/[0-9]*/environ 2>/dev/null); do
    pid=${file#/proc/}
    found="$found ${pid%/environ}"
  done
}

# The state is behind the name, which may have any characters.
is_alive() {
  line=
  { read -r line <"/proc/$1/stat"; } 2>/dev/null
  line=${line##*) }
  case $line in '' | [ZXx]*) return 1 ;; esac
}

# Each is stopped before it is asked for its children, so that it makes no more.
stop_below() {
  living=
  set -- $*
  while [ $# -gt 0 ]; do
    next=
    for pid; do
      for file in "/proc/$pid/task/"*/children; do
        line=
        { read -r line <"$file"; } 2>/dev/null
        for child in $line; do
          is_alive "$child" && kill -STOP "$child" 2>/dev/null && living="$living $child"
          next="$next $child"
        done
      done
    done
    set -- $next
  done
}

# Where processes have numbers of their own, the first of them is in the group, and goes when all others have.
is_group_alive() {
  [ "$commands" != ' ' ] || return 1
  for file in /proc/[0-9]*/stat; do
    line=
    { read -r line <"$file"; } 2>/dev/null
    set -- ${line##*) }
    case $commands in *" $3:"*) case $1 in [ZXx]) ;; *) return 0 ;; esac ;; esac
  done
  return 1
}

# A process that adopts what loses its parent goes last: one that threw its environment away is found below it only.
is_done=
for pass in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  marked
  [ -n "$found" ] && kill -STOP $found 2>/dev/null
  for again in 1 2 3 4 5 6 7 8 9 10; do
    stop_below $found
    [ -n "$living" ] || break
    kill -KILL $living 2>/dev/null
    [ "$again" -lt 3 ] || sleep 0.01
  done
  for command in $commands; do
    group=${command%%:*}
    [ -n "$group" ] && kill -KILL "-$group" 2>/dev/null
  done
  [ -n "$found" ] && kill -KILL $found 2>/dev/null
  if [ -z "$found" ] && ! is_group_alive; then
    is_done=1
    break
  fi
  sleep 0.01
done
if [ -n "$is_done" ] && [ -n "$aside" ]; then
  for command in $commands; do
    list="$aside/running-${command#*:}"
    [ -f "$list.list" ] && : >"$list.end"
  done
fi
rm -rf -- "$temporary"
for name in "$@"; do
  place=$root/$name
  # A new program may take it away, or stand in its place, at this moment. `flock PATH` would make a file there.
  [ -k "$place" ] && (
    exec 9<"$place/." && flock -n 9 && [ "$place" -ef /proc/self/fd/9 ] && rmdir -- "$place"
  ) 2>/dev/null
done
