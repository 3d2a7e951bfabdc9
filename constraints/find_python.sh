#!/bin/sh
# Prints the path of $PYTHON, or of the first Python found, if it can make the environment: .venv
# takes 3.11 to 3.13; `find_python.sh 12` asks for 3.12, which .venv-train needs.
least=${1:-11} most=${1:-13}
fits="import ensurepip, sys, venv; sys.exit(not (3, $least) <= sys.version_info[:2] <= (3, $most))"
# A pyenv shim of a version that is not the chosen one fails; the version itself still works.
pyenv="${PYENV_ROOT:-$HOME/.pyenv}/versions"
for python in ${PYTHON:-python3.11 python3.12 python3.13 python3 "$pyenv"/3.*/bin/python3}; do
    if "$python" -c "$fits" 2>/dev/null; then
        command -v "$python"
        exit 0
    fi
done
echo "No usable ${PYTHON:-Python} (3.$least to 3.$most) with its venv module. Install one, such as with" >&2
echo "'apt install python3.$least python3.$least-venv', or name yours: PYTHON=/path/to/python3" >&2
exit 1
