# Runs the chain node until the other end of standard input is closed, then lets it save and end.
#
# The runner holds that pipe and never writes to it. However the runner ends, even by kill -9, the kernel closes the pipe
# and the watcher below wakes up. This shell has its own process group, so signals to the runner's group do not reach it.
#
# usage: supervisor.sh <folder to remove at the end, or ""> <program> <argument>...

scratch=$1
shift
exec 3<&0 </dev/null

# The node inherits this. Before it has set up its own handler, a signal would kill it unsaved. Ignored signals are simply
# sent again by the watcher.
trap '' HUP INT TERM

"$@" 3<&- &
node=$!

# The watcher closes standard output and error: they carry the lock of the state folder, which must be free as soon as the
# node has ended.
{
  while read -r _ <&3; do :; done
  tenths=0
  while [ "$tenths" -lt 600 ] && kill -TERM "$node"; do
    sleep 0.1 || sleep 1
    tenths=$((tenths + 1))
  done
  kill -KILL "$node"
} >/dev/null 2>&1 &
watcher=$!
exec 3<&-

wait "$node"
code=$?
kill -KILL "$watcher" 2>/dev/null
[ -z "$scratch" ] || rm -rf "$scratch"
exit "$code"
