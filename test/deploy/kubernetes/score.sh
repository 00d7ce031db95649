#!/usr/bin/env bash
# `npm test -- kubernetes-score`: renders deploy/kubernetes with Kustomize, and checks it with kube-score: whether
# selectors of Services and network policies match pods, probes, resources, rights and disruption budgets. Both tools are
# built once. The last line is `N passed, N failed`, counted in checks of resources.
set -euo pipefail
cd "$(dirname "$0")/../../.."

KUBERNETES=v1.37
KUSTOMIZE=v5.7.1
KUBE_SCORE=v1.20.0
# Images have fixed tags. Users are those of the images. `/ping` is right for both probes.
IGNORED=(container-image-pull-policy container-security-context-user-group-id pod-probes-identical)
OPTIONAL=(container-memory-requests-equal-limits container-seccomp-profile)

kustomize=$(scripts/go.sh "sigs.k8s.io/kustomize/kustomize/v5@$KUSTOMIZE")
kube_score=$(scripts/go.sh "github.com/zegl/kube-score/cmd/kube-score@$KUBE_SCORE")

score() {
  "$kustomize" build "$1" | "$kube_score" score --kubernetes-version "$KUBERNETES" --output-format ci \
    --ignore-container-cpu-limit "${IGNORED[@]/#/--ignore-test=}" "${OPTIONAL[@]/#/--enable-optional-test=}" -
}

passed=0
failures=()
for folder in deploy/kubernetes/base deploy/kubernetes/overlays/*; do
  # It exits with 1 if a check fails.
  scored=$(score "$folder") || true
  passed=$((passed + $(grep -c '^\[OK\]' <<<"$scored" || true)))
  [ -n "$scored" ] || failures+=("${folder##*/}: cannot be rendered")
  while IFS= read -r line; do failures+=("${folder##*/}: $line"); done < <(grep '^\[CRITICAL\]' <<<"$scored")
done

((${#failures[@]} == 0)) || printf '  %s\n' "${#failures[@]} failing" "${failures[@]}"
echo "$passed passed, ${#failures[@]} failed"
exit $((${#failures[@]} > 0))
