#!/bin/sh
# Makes docs/images/report.png again: two real runs of HEAD, of which one draws its replay samples from a generator that
# nobody seeded, from step 20 on; their report; and a headless Chromium's picture of its top.
# Needs `make install` and Chromium (Debian: chromium). Takes about a minute.
#   docs/images/make_report_picture.sh [PAIR]     PAIR: a directory that holds the runs a and b already
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
python=$root/.venv/bin/python
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
work=$(mktemp -d)
trap 'git worktree remove --force "$work/tree" 2>/dev/null || true; rm -rf "$work"' EXIT
pair=${1:-$work/pair}
if [ $# -eq 0 ]; then
  git worktree add --quiet --detach "$work/tree" HEAD
  for leg in a b; do
    (cd "$work/tree" && FOXRUN_LEG=$leg FOXRUN_SHA=$(git rev-parse HEAD) "$python" -m trainer --out "$pair/$leg" \
      --seed 42 --mode 1 --steps 120 --eval-steps 120 -p envs=16 -p width=64 -p lr=0.003 -p multiplier=50 \
      -p holding_penalty_bp=0 -p fault=unseeded-sampler@b:20 | tail -n 1)
  done
fi
# In the pair's own directory, so that the report shows no directory of this machine. Drift ends with exit code 3.
(cd "$pair" && "$python" -P -m orchestrator compare a b --report "$work/report.html" >"$work/text") || [ $? -eq 3 ]
head -n 2 "$work/text"
"$chromium" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$work/profile" \
  --window-size=880,1270 --screenshot="$work/report.png" "file://$work/report.html" 2>"$work/chromium.log"
size=$(wc -c <"$work/report.png")
[ "$size" -lt 200000 ] || { echo "report.png has $size bytes, more than 200,000" >&2; exit 1; }
mv "$work/report.png" docs/images/report.png
echo "docs/images/report.png: $size bytes"
