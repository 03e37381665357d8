#!/bin/sh
# Train the bundled English model. Stopped in any way, the same command continues.
#
#     models/en/make.sh DATA WORK
#
# DATA holds raw/en-speeches.prose.txt and en-craft, WORK gets the text and all grammars. About 50 minutes of one core.
set -eu
data=$1 work=$2
here=$(dirname "$0")
[ -e "$work/text/train.txt" ] || python "$here/build_text.py" "$data" "$work/text"
ramify focus "$work/text" --recipe "$here/recipe.toml" --out "$work/focus"
