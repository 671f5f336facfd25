#!/bin/sh
# A regression pair of HEAD on synthetic market data: the main job, from nothing, on this machine.
set -eu
cd "$(dirname "$0")/.."
mkdir -p demo
echo "1. Writing a synthetic, valid DBN file of order-book data: demo/synthetic.mbp-10.dbn.zst"
python -m trainer.data.generate --rows 20000 --seed 7 demo/synthetic.mbp-10.dbn.zst
echo "2. foxrun submit --sha HEAD --regression-pair -p data=demo/synthetic.mbp-10.dbn.zst ..."
exec foxrun submit --sha HEAD --regression-pair --seed 42 --steps 60 --eval-steps 20 \
  -p data=demo/synthetic.mbp-10.dbn.zst -p envs=32 "$@"
