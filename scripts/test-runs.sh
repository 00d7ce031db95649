# To be sourced: runs groups of tests, some in parallel, and prints their combined result as the last line.

logs=$(mktemp -d)
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Kills the background jobs that still run, each with its process group (`set -m`).
finish() {
  trap '' TERM INT HUP
  local job
  for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done
  wait
  rm -r "$logs"
}

# run NAME COMMAND…: runs tests. They succeed if the command prints `N passed, 0 failed` and exits with 0.
run() {
  local name=$1 start=$SECONDS
  shift
  { "$@" 2>&1 && touch "$logs/$name.ended"; } | tee "$logs/$name" || true
  echo $((SECONDS - start)) >"$logs/$name.seconds"
}

# show NAME…: prints the output of runs that was not shown yet.
show() {
  local name
  for name; do cat "$logs/$name"; done
}

# conclude NAME…: repeats the failures of these runs, so that they are at the end of the output, and prints how
# long each took and, as the last line, the totals. A run that did not finish counts as one more failure. Exits
# with 0 if all succeeded.
conclude() {
  local name sums passed=0 failed=0
  for name; do
    [ -e "$logs/$name" ] || : >"$logs/$name"
    sums=$(grep -Ex '[0-9]+ passed, [0-9]+ failed' "$logs/$name" | tail -n 1) || sums='0 passed, 0 failed'
    passed=$((passed + ${sums%% *}))
    sums=${sums#*, }
    failed=$((failed + ${sums% *}))
    if ((${sums% *} > 0)); then
      printf '\n%s:\n' "$name"
      # Mocha's report of its failures.
      sed -n '/^ *[0-9]\+ failing$/,$p' "$logs/$name"
    elif [ ! -e "$logs/$name.ended" ] || ! grep -Eqx '[0-9]+ passed, 0 failed' "$logs/$name"; then
      failed=$((failed + 1))
      printf '\n%s did not finish; the end of its output:\n' "$name"
      tail -n 20 "$logs/$name"
    fi
  done
  for name; do
    [ ! -e "$logs/$name.seconds" ] || printf '%s: %s s\n' "$name" "$(cat "$logs/$name.seconds")"
  done
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}
