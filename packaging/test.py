#!/usr/bin/env python3
"""Runs go test with the given arguments. Prints the whole output of tests that fail, and at
the end the skipped tests with their reasons, and the ten slowest tests. With -v it prints the
output of all tests. The exit status is that of go test."""

import collections
import json
import os
import subprocess
import sys


def seconds(stamp):  # the time of day in seconds, from a time such as "2026-07-27T18:30:00.123456789+02:00"
    hour, minute, second = stamp[11:].rstrip("Z").split("+")[0].split(":")[:3]
    return int(hour) * 3600 + int(minute) * 60 + float(second.split("-")[0])


verbose = "-v" in sys.argv
output = collections.defaultdict(list)  # key: package; value: pairs of a test and its output
failed, began, took, skipped = set(), {}, collections.Counter(), []

# With the race detector, a program sleeps for a second before it exits. The tests run hundreds
# of programs.
os.environ.setdefault("GORACE", "atexit_sleep_ms=0")
go = subprocess.Popen(["go", "test", "-json", *sys.argv[1:]], stdout=subprocess.PIPE, text=True, errors="replace")
for line in go.stdout:
    try:
        e = json.loads(line)
    except ValueError:
        print(line, end="", flush=True)
        continue
    action, package, test = e["Action"], e.get("Package"), e.get("Test")
    key = package, test
    if action == "build-output" or action == "output" and verbose:
        print(e["Output"], end="", flush=True)
    elif action == "output":
        output[package].append((test, e["Output"]))
    elif action in ("run", "cont"):
        began[key] = seconds(e["Time"])
    elif action in ("pause", "pass", "fail", "skip") and test:
        took[key] += (seconds(e["Time"]) - began.pop(key, seconds(e["Time"]))) % 86400
    if action == "fail" and test:
        failed.add(key)
    if action == "skip" and test and not verbose:
        why = [text.strip() for t, text in output[package] if t == test and not text.lstrip().startswith(("=== ", "--- "))]
        skipped.append(f"{package} {test}: {' '.join(why)}")
    if action in ("pass", "fail", "skip") and not test and not verbose:
        shown = {test for p, test in failed if p == package}
        shown |= {test for p, test in began if p == package}  # one panicked, or was killed
        for test, text in output.pop(package, []):
            if test in shown or test is None and (action == "fail" or text.startswith(("ok", "?"))):
                if not text.startswith("=== "):
                    print(text, end="", flush=True)

if skipped:
    print("skipped:", *skipped, sep="\n  ")
if slowest := [(key, time) for key, time in took.most_common() if "/" not in key[1] and time >= 1][:10]:
    print("the slowest tests:")
    for (package, test), time in slowest:
        print(f"{time:8.1f} s  {package} {test}")
sys.exit(go.wait())
