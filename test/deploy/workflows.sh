#!/usr/bin/env bash
# `npm test -- workflows`: validates .github/workflows with actionlint. The last line is `N passed, N failed`, counted
# in workflows.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Newer releases need a newer Go than scripts/go.sh.
actionlint=$(scripts/go.sh github.com/rhysd/actionlint/cmd/actionlint@v1.7.11)

passed=0
failures=()
for workflow in .github/workflows/*.yml; do
  # Without the linters of scripts that a machine may have or not.
  if errors=$("$actionlint" -no-color -shellcheck= -pyflakes= "$workflow" 2>&1); then
    passed=$((passed + 1))
  else
    failures+=("$errors")
  fi
done

# Same heading as Mocha's: scripts/test-runs.sh repeats what follows it.
((${#failures[@]} == 0)) || printf '  %s failing\n' "${#failures[@]}"
((${#failures[@]} == 0)) || printf '\n%s\n' "${failures[@]}"
echo "$passed passed, ${#failures[@]} failed"
exit $((${#failures[@]} > 0))
