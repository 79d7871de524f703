trap '' HUP INT TERM QUIT
groups=' '
while read -r word number; do
  case $word in
    +) groups="$groups$number " ;;
    -) case $groups in *" $number "*) groups="${groups%%" $number "*} ${groups#*" $number "}" ;; esac ;;
  esac
done
for pass in 1 2 3; do
  for group in $groups; do kill -KILL "-$group" 2>/dev/null; done
  for file in $(grep -lasF "SHEAF_COMMAND=$1." /proc/[0-9]*/environ 2>/dev/null); do
    pid=${file#/proc/}
    kill -KILL "${pid%/environ}" 2>/dev/null
  done
done
rm -rf -- "$2"
root=$3
shift 3
for name in "$@"; do
  [ -k "$root/$name" ] && flock -n "$root/$name" rmdir -- "$root/$name" 2>/dev/null
done
