# To be sourced: sets `cache` to the folder of the programs that all clones share, as in dev/paths.ts.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/package-registry-search
((EUID != 0)) || cache=/var/cache/package-registry-search
mkdir -p "$cache"
