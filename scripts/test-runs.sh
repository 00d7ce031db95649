# To be sourced: runs of tests, some beside others, and in the last line how all of them went together.

logs=$(mktemp -d)
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Ends what still runs in the background, each job with its whole process group (`set -m`).
finish() {
  trap '' TERM INT HUP
  local job
  for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done
  wait
  rm -r "$logs"
}

# run NAME COMMAND…: a run of tests. It went well where the command says `N passed, 0 failed` and ends with 0.
run() {
  local name=$1
  shift
  { "$@" 2>&1 && touch "$logs/$name.ended"; } | tee "$logs/$name" || true
}

# show NAME…: what runs have printed whose output went nowhere.
show() {
  local name
  for name; do cat "$logs/$name"; done
}

# conclude NAME…: what failed in these runs once more, for those who see the end of the output alone, and as the last line
# the sums of all, in which a run that broke off is one failure more. Exits with 0 where every run went well.
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
      printf '\n%s broke off; the end of its output:\n' "$name"
      tail -n 20 "$logs/$name"
    fi
  done
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}
