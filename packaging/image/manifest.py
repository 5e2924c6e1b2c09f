#!/usr/bin/env python3
"""Writes the manifest of an image for Raspberry Pi Imager.

usage: manifest.py IMAGE URL EPOCH

The packed image lies beside IMAGE. URL is the folder that both are downloaded from. The
keys are those of doc/json-schema of raspberrypi/rpi-imager, all that it requires. Without
the boards Imager's first page has none to choose, and no button that leads on.
"""
import hashlib
import json
import os
import sys
import time

image, url, epoch = sys.argv[1], sys.argv[2].rstrip("/"), int(sys.argv[3])


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


name = os.path.basename(image)
# The supported devices, with Imager's tags for them. Imager has no separate tag for the Zero 2 W.
boards = [
    ("Raspberry Pi 5", "Model B", ["pi5-64bit"]),
    ("Raspberry Pi 4", "Model B and 400", ["pi4-64bit"]),
    ("Raspberry Pi Zero 2 W", "Not the first Zero W", ["pi3-64bit"]),
    ("Raspberry Pi 3", "Models A+, B and B+", ["pi3-64bit"]),
]
json.dump({"imager": {"devices": [
    {"name": board, "description": models, "tags": tags, "matching_type": "exclusive", "architecture": "armv8"} for board, models, tags in boards
]}, "os_list": [{
    "name": "Perch",
    "description": "A voice server for Stack-chan robots, on Debian 13",
    "icon": "data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 40 40'><rect width='40' height='40' rx='6'/>"
            "<g fill='white'><circle cx='12' cy='16' r='3'/><circle cx='28' cy='16' r='3'/><rect x='14' y='25' width='12' height='2'/></g></svg>",
    "url": url + "/" + name + ".xz",
    "bmap_url": url + "/" + name[:-len(".img")] + ".bmap",
    "extract_size": os.path.getsize(image),
    "extract_sha256": digest(image),
    "image_download_size": os.path.getsize(image + ".xz"),
    "image_download_sha256": digest(image + ".xz"),
    "release_date": time.strftime("%Y-%m-%d", time.gmtime(epoch)),
    "devices": sorted({tag for _, _, tags in boards for tag in tags}),
    "architecture": "armv8",
    "init_format": "rpi-preseed",
}]}, sys.stdout, indent=2)
print()
