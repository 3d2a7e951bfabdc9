#!/bin/sh
# Prints the path of $PYTHON, or of the first Python found, if it can make .venv: 3.11 to 3.13.
fits='import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
for python in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
    if "$python" -c "$fits" 2>/dev/null; then
        command -v "$python"
        exit 0
    fi
done
echo "No usable ${PYTHON:-Python 3.11, 3.12 or 3.13} with its venv module. Install one, such as with" >&2
echo "'apt install python3.11 python3.11-venv', or name yours: make venv PYTHON=/path/to/python3" >&2
exit 1
