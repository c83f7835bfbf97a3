# Runs the chain node for as long as somebody holds the other end of our standard input, then lets it save and end.
#
# The runner holds that pipe and never writes to it. However the runner ends, kill -9 included, the kernel closes
# the pipe and the watcher below wakes up. This shell is in a process group of its own, so a signal to the runner's
# group does not reach it.
#
# usage: supervisor.sh <folder to remove at the end, or ""> <program> <argument>...

scratch=$1
shift
exec 3<&0 </dev/null

# The node inherits this. Until it has set up its own handler, a request to end would kill it unsaved; ignored, the
# request is simply repeated.
trap '' HUP INT TERM

"$@" 3<&- &
node=$!

# The watcher gives away standard output and error: they carry the lock of the state folder, which has to be free as
# soon as the node has ended.
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
