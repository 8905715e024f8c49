#!/bin/sh
# What `make demo` runs: puts examples/ into a fresh data folder and asks three questions, one without an answer.
# The third must be abstained (exit code 4): then the demo ends well.
set -eu
leadline=$1
cd "$(dirname "$0")/.."
export LEADLINE_DATA_DIR=demo-data
rm -rf "$LEADLINE_DATA_DIR"

run() {
    printf '\n$ leadline'
    for word in "$@"; do
        case $word in *' '*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    "$leadline" "$@"
}

run ingest examples/documents
run ask "At what wind speed must the quay cranes stop lifting?"
run ask "How often must the battery of the tide gauge be replaced?"
status=0
run ask "Who owns the harbour restaurant?" --web never || status=$?
if [ "$status" -ne 4 ]; then
    echo "The last question has no answer in the documents and should have been abstained (exit code 4, got $status)." >&2
    exit 1
fi
printf '\nThe last question has no answer in the documents, so Leadline said so instead of guessing.\n'
