#!/usr/bin/env bash
# `npm test -- kubernetes`: renders deploy/kubernetes with Kustomize and validates every resource against the
# schemas of the Kubernetes API, without a cluster. Both tools are installed once. Resources of operators have no
# schema there; test/unit/kubernetes.test.ts checks what the service needs of them. The last line is
# `N passed, N failed`, counted in resources.
set -euo pipefail
cd "$(dirname "$0")/../../.."

# Newer releases may need a newer Go.
KUSTOMIZE=v5.7.1
# The newest version whose schemas kubernetes-validate 1.37 has.
KUBERNETES=1.37

source scripts/cache.sh
scratch=$(mktemp -d "$cache/kubernetes-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

kustomize=$(scripts/go.sh "sigs.k8s.io/kustomize/kustomize/v5@$KUSTOMIZE")
digest=$(sha256sum test/deploy/kubernetes/requirements.txt)
python=$(scripts/python-environment.sh "$cache/kubernetes-validate-${digest:0:12}" --requirement test/deploy/kubernetes/requirements.txt)

# A folder that cannot be rendered counts as one failure.
unrendered=()
rendered=()
for folder in deploy/kubernetes/base deploy/kubernetes/overlays/*; do
  name=${folder##*/}
  if "$kustomize" build "$folder" >"$scratch/$name.yaml" 2>"$scratch/$name.error"; then
    rendered+=("$scratch/$name.yaml")
  else
    unrendered+=("$scratch/$name.error")
  fi
done

"$python" - "$KUBERNETES" "${rendered[@]}" -- "${unrendered[@]}" <<'EOF'
import sys
from pathlib import Path

import kubernetes_validate
import yaml

# Groups of the operators, whose schemas are not part of Kubernetes.
CUSTOM = {"elasticsearch.k8s.elastic.co", "monitoring.coreos.com"}

version, *arguments = sys.argv[1:]
end = arguments.index("--")
passed, custom, failures = 0, 0, []

for path in arguments[end + 1 :]:
    failures.append(f"{Path(path).stem}: {Path(path).read_text().strip()}")

for path in arguments[:end]:
    resources = [one for one in yaml.safe_load_all(Path(path).read_text()) if one is not None]
    if not resources:
        failures.append(f"{Path(path).stem}: renders nothing")
    for resource in resources:
        name = f"{Path(path).stem}: {resource['kind']}/{resource['metadata']['name']}"
        if resource["apiVersion"].split("/")[0] in CUSTOM:
            custom += 1
            continue
        try:
            # Strict: unknown fields, such as misspelled ones, are errors.
            kubernetes_validate.validate(resource, version, strict=True)
            passed += 1
        # Also a resource without a schema: its group or its kind is misspelled.
        except Exception as error:
            where = ".".join(str(part) for part in getattr(error, "path", []))
            failures.append(f"{name}: {where} {getattr(error, 'message', error)}")

print(f"{custom} custom resources have no schema in Kubernetes and were only rendered")
if failures:
    # Same heading as Mocha's: scripts/test-runs.sh repeats what follows it.
    print(f"  {len(failures)} failing")
    for failure in failures:
        print(f"\n  {failure}")
print(f"{passed} passed, {len(failures)} failed")
sys.exit(bool(failures))
EOF
