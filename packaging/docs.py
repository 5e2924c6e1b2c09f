#!/usr/bin/env python3
"""Checks the pages: links lead somewhere, and the tests and functions that pages name exist."""
import glob, os, re, subprocess, sys

pages = [p for g in ("*.md", "docs/*.md", "docs/how-to/*.md", "firmware-tools/discovery/*.md") for p in glob.glob(g)]
plain = {p: re.sub(r"(?ms)^```.*?^```$", "", open(p, encoding="utf-8").read()) for p in pages}

def anchors(text):
    """The names of a page's headings, as GitHub makes them."""
    return {re.sub(r"[^a-z0-9_-]", "", h.lower().replace(" ", "-")) for h in re.findall(r"(?m)^#+ (.*)$", text)}

faults = []
for page, text in plain.items():
    for link in re.findall(r"\]\(([^)\s]*)\)", re.sub(r"`[^`\n]*`", "", text)):
        if ":" in link:
            continue
        path, _, anchor = link.partition("#")
        to = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(to):
            faults.append(f"{page}: there is no {to}")
        elif anchor and anchor not in anchors(plain.get(to, "")):
            faults.append(f"{page}: {to} has no heading #{anchor}")

files = subprocess.run(["git", "ls-files", "*_test.go", "*.txtar"], capture_output=True, text=True, check=True).stdout.split()
named = {os.path.basename(f) for f in files}
for f in files:
    if f.endswith(".go") and os.path.exists(f):
        named.update(re.findall(r"(?m)^func ((?:Test|Fuzz)\w+)", open(f, encoding="utf-8").read()))
for page in ("docs/firmware.md", "CONTRIBUTING.md", "SECURITY.md"):
    for name in re.findall(r"`((?:Test|Fuzz)[A-Za-z0-9]+|[a-z-]+\.txtar)`", plain[page]):
        if name not in named:
            faults.append(f"{page} names {name}, which does not exist")
# The walks in the documentation name functions in the form `folder/file.go`: `Type.method`, `function`.
for line in plain["docs/architecture.md"].splitlines():
    file, names = "", ()
    for word in re.findall(r"`([^`]+)`", line):
        if word.endswith(".go"):
            file = os.path.join("" if "/" in word else os.path.dirname(file), word)
            code = open(file, encoding="utf-8").read() if os.path.exists(file) else ""
        elif file and re.fullmatch(r"([A-Za-z]+[.])?[A-Za-z]+", word) and re.match(r"\d+\. `", line):
            receiver, _, name = word.rpartition(".")
            method = r"\(([a-zA-Z]+ )?[*]?" + receiver + r"\) " if receiver else r"(\([^)]*\) )?"
            if not re.search(r"(?m)^(func " + method + name + r"[\[(]|type " + name + " )", code):
                faults.append(f"docs/architecture.md: {file} has no {word}")
print("\n".join(faults), file=sys.stderr)
sys.exit(bool(faults))
