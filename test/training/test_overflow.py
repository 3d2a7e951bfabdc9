import subprocess
import sys

SAYS = """
import os
from g1_policy_node.training.overflow import OverflowWatch
with OverflowWatch() as watch:
    os.write(1, b'nefc overflow - please increase njmax to 250\\nall is well\\n')
    os.write(2, b'nconmax overflow - please increase nconmax\\n')
print(watch.count)
"""


def test_overflow_lines_of_either_stream_are_counted_and_passed_on() -> None:
    done = subprocess.run([sys.executable, '-c', SAYS], capture_output=True, text=True, check=True)
    assert 'all is well' in done.stdout
    assert 'njmax to 250' in done.stdout
    assert 'increase nconmax' in done.stderr
    assert done.stdout.splitlines()[-1] == '2'
