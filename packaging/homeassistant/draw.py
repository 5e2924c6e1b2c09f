#!/usr/bin/env python3
"""Draws icon.png and logo.png of the app into a folder.

usage: draw.py FOLDER

The face is the robot's, white on black, and the word is made of strokes, so that no font
is needed. A point belongs to a shape where its distance to it is negative; the distance
is the smoothing, too.
"""
import math
import os
import struct
import sys
import zlib

BLACK, WHITE, BLUE = (22, 27, 34), (255, 255, 255), (84, 150, 255)


def circle(x, y, r):
    return lambda px, py: math.hypot(px - x, py - y) - r


def box(x, y, w, h, r):
    def distance(px, py):
        dx, dy = abs(px - x - w / 2) - w / 2 + r, abs(py - y - h / 2) - h / 2 + r
        return math.hypot(max(dx, 0), max(dy, 0)) + min(max(dx, dy), 0) - r
    return distance


def line(x1, y1, x2, y2, width):
    def distance(px, py):
        dx, dy = x2 - x1, y2 - y1
        t = max(0, min(1, ((px - x1) * dx + (py - y1) * dy) / (dx * dx + dy * dy)))
        return math.hypot(px - x1 - t * dx, py - y1 - t * dy) - width / 2
    return distance


def arc(x, y, r, begin, end, width):
    """From one angle clockwise to another, in degrees; 0 is to the right."""
    ends = [(x + r * math.cos(math.radians(a)), y + r * math.sin(math.radians(a))) for a in (begin, end)]

    def distance(px, py):
        at = math.degrees(math.atan2(py - y, px - x))
        if (at - begin) % 360 <= (end - begin) % 360 or end - begin >= 360:
            return abs(math.hypot(px - x, py - y) - r) - width / 2
        return min(math.hypot(px - ex, py - ey) for ex, ey in ends) - width / 2
    return distance


def face(x, y, size):
    """The face, and below it what it sits on."""
    s = size / 128
    at = lambda f, *n: f(x + n[0] * s, y + n[1] * s, *(one * s for one in n[2:]))
    return [
        (BLACK, at(box, 4, 10, 120, 92, 20)),
        (WHITE, at(circle, 40, 48, 8)),
        (WHITE, at(circle, 88, 48, 8)),
        (WHITE, arc(x + 64 * s, y + 62 * s, 14 * s, 25, 155, 6 * s)),
        (BLUE, line(x + 12 * s, y + 114 * s, x + 116 * s, y + 114 * s, 8 * s)),
    ]


def word(x, y, r, width):
    """perch, its letters standing on y."""
    strokes, step = [], 2 * r + width + r * 0.75
    strokes += [arc(x, y - r, r, 0, 360, width), line(x - r, y - 2 * r, x - r, y + r * 1.1, width)]
    x += step
    strokes += [arc(x, y - r, r, 180, 360, width), arc(x, y - r, r, 50, 180, width), line(x - r, y - r, x + r, y - r, width)]
    x += step
    strokes += [line(x - r, y - 2 * r, x - r, y, width), arc(x, y - r, r, 180, 295, width)]
    x += step * 0.86
    strokes += [arc(x, y - r, r, 50, 310, width)]
    x += step * 0.98
    strokes += [line(x - r, y - r * 3.3, x - r, y, width), arc(x, y - r, r, 180, 360, width), line(x + r, y - r, x + r, y, width)]
    return [(BLUE, s) for s in strokes]


def draw(path, width, height, shapes):
    rows = bytearray()
    for py in range(height):
        rows.append(0)  # no filter
        for px in range(width):
            r, g, b, a = 0.0, 0.0, 0.0, 0.0
            for colour, distance in shapes:
                on = max(0.0, min(1.0, 0.5 - distance(px + 0.5, py + 0.5)))
                if on > 0:
                    left = a * (1 - on)
                    r, g, b = ((c * left + n * on) / (left + on) for c, n in zip((r, g, b), colour))
                    a = left + on
            rows += bytes(round(one) for one in (r, g, b, a * 255))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(bytes(rows), 9)) + chunk(b"IEND", b""))


draw(os.path.join(sys.argv[1], "icon.png"), 128, 128, face(0, 0, 128))
draw(os.path.join(sys.argv[1], "logo.png"), 250, 100, face(4, 6, 88) + word(116, 64, 9.5, 4.5))
