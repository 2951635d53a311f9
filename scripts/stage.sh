#!/bin/sh
# stage.sh stage-N [TARGET…]: runs the targets of stage N, or lists them.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."
number=${1#stage-}
shift
case $number in
  [1-4]) ;;
  *)
    echo "there is no stage $number: stages are stage-1 to stage-4" >&2
    exit 2
    ;;
esac
for other in "$@"; do
  case $other in
    stage-[1-4])
      echo "one stage at a time: run make stage-$number and make $other one after the other" >&2
      exit 2
      ;;
  esac
done
for makefile in 0"$number"-*/Makefile; do
  if [ -f "$makefile" ]; then
    exec "${MAKE:-make}" -C "${makefile%/Makefile}" "$@"
  fi
done
echo "stage $number is not part of this repository yet: there is no folder that begins with 0$number-" >&2
exit 2
