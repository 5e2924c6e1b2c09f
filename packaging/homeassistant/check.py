#!/usr/bin/env python3
"""Checks the files of the app by the rules of Home Assistant's Supervisor, and options that
are read from standard input, in JSON, by the app's own schema.

usage: check.py FOLDER [--options]

The rules are those that the Supervisor has in voluptuous (2026.11) for repository.yaml,
config.yaml and translations, but for keys that this app has no use for: such a key is refused
here, where the Supervisor would drop it without a word. With --options the options are
written as the Supervisor hands them to the app.
"""
import json
import pathlib
import re
import sys

import voluptuous as vol
import yaml

folder = pathlib.Path(sys.argv[1])

ELEMENT = re.compile(
    r"^(?:|bool|email|url|port|device(?:\((?P<filter>subsystem=[a-z]+)\))?"
    r"|str(?:\((?P<s_min>\d+)?,(?P<s_max>\d+)?\))?|password(?:\((?P<p_min>\d+)?,(?P<p_max>\d+)?\))?"
    r"|int(?:\((?P<i_min>\d+)?,(?P<i_max>\d+)?\))?|float(?:\((?P<f_min>[\d\.]+)?,(?P<f_max>[\d\.]+)?\))?"
    r"|match\((?P<match>.*)\)|list\((?P<list>.+)\))\??$")
element = vol.Schema(vol.Any(vol.Match(ELEMENT), [vol.Any(vol.Match(ELEMENT), {str: vol.Self})], {str: vol.Self}))
port = vol.All(vol.Coerce(int), vol.Range(min=1, max=65535))
image = vol.Match(r"^([a-z0-9][a-z0-9.\-]*(:[0-9]+)?/)*?([a-z0-9{][a-z0-9.\-_{}]*/)*?([a-z0-9{][a-z0-9.\-_{}]*)$")

config = vol.Schema({
    vol.Required("name"): str,
    vol.Required("version"): vol.All(str, vol.Match(r"^[0-9A-Za-z][0-9A-Za-z._-]*$")),  # it is the image's tag, too
    vol.Required("slug"): vol.Match(r"^[-_.A-Za-z0-9]+$"),
    vol.Required("description"): str,
    vol.Required("arch"): [vol.In(["aarch64", "amd64"])],
    vol.Optional("url"): vol.Url(),
    vol.Optional("startup"): vol.In(["initialize", "system", "services", "application", "once"]),
    vol.Optional("init"): vol.Boolean(),
    vol.Optional("stage"): vol.In(["stable", "experimental", "deprecated"]),
    vol.Optional("watchdog"): vol.Match(r"^(?:https?|\[PROTO:\w+\]|tcp):\/\/\[HOST\]:(\[PORT:\d+\]|\d+).*$"),
    vol.Optional("ingress"): vol.Boolean(),
    vol.Optional("ingress_port"): vol.Any(port, vol.Equal(0)),
    vol.Optional("ingress_stream"): vol.Boolean(),
    vol.Optional("panel_icon"): str,
    vol.Optional("panel_title"): str,
    vol.Optional("host_network"): vol.Boolean(),
    vol.Optional("map"): [vol.Schema({
        vol.Required("type"): vol.In(["data", "config", "ssl", "addons", "backup", "share", "media", "homeassistant_config",
                                      "all_addon_configs", "addon_config"]),
        vol.Optional("read_only"): bool, vol.Optional("path"): str})],
    vol.Optional("homeassistant_api"): vol.Boolean(),
    vol.Optional("services"): [vol.Match(r"^(?P<service>mqtt|mysql):(?P<rights>provide|want|need)$")],
    vol.Optional("discovery"): [str],
    vol.Optional("timeout"): vol.All(vol.Coerce(int), vol.Range(min=10, max=300)),
    vol.Optional("backup"): vol.In(["hot", "cold"]),
    vol.Optional("backup_pre"): str,
    vol.Optional("backup_post"): str,
    vol.Optional("backup_exclude"): [str],
    vol.Optional("options"): dict,
    vol.Optional("schema"): vol.Any(vol.Schema({str: element}), False),
    vol.Optional("image"): image,
})
repository = vol.Schema({vol.Required("name"): str, vol.Optional("url"): vol.Url(), vol.Optional("maintainer"): str})
translated = vol.Schema({vol.Required("name"): str, vol.Optional("description"): vol.Maybe(str), vol.Optional("fields"): {str: vol.Self}})
translation = vol.Schema({vol.Optional("configuration"): {str: translated}, vol.Optional("network"): {str: str}})


def load(name):
    return yaml.safe_load((folder / name).read_text(encoding="utf-8"))


def single(kind, value, key):
    if value is None:
        raise vol.Invalid(f"Missing required option '{key}'")
    found = ELEMENT.match(kind)
    if kind.startswith(("str", "password")):
        return str(value)
    if kind.startswith("bool"):
        return vol.Boolean()(value)
    if kind.startswith("int"):
        return vol.Coerce(int)(value)
    if kind.startswith("match"):
        return vol.Match(found.group("match"))(str(value))
    if kind.startswith("list"):
        return vol.In(found.group("list").split("|"))(str(value))
    raise vol.Invalid(f"'{key}' is of a kind that this app does not use: {kind}")


def validated(schema, options, root):
    """An option that is not in the schema is dropped. A section cannot be left out."""
    kept = {}
    for key, value in options.items():
        kind = schema.get(key)
        if isinstance(kind, list):
            if not isinstance(value, list):
                raise vol.Invalid(f"Invalid list for option '{key}'")
            kept[key] = [validated(kind[0], one, key) if isinstance(kind[0], dict) else single(kind[0], one, key) for one in value]
        elif isinstance(kind, dict):
            if not isinstance(value, dict):
                raise vol.Invalid(f"Invalid dict for option '{key}'")
            kept[key] = validated(kind, value, key)
        elif kind is not None:
            kept[key] = single(kind, value, key)
    for key in set(schema) - set(kept):
        kind = schema[key][0] if isinstance(schema[key], list) else schema[key]
        if not isinstance(kind, str) or not kind.endswith("?"):
            raise vol.Invalid(f"Missing option '{key}' in {root}")
    return kept


app = load("perch/config.yaml")
repository(load("repository.yaml"))
config(app)
options = validated(app["schema"], app["options"], "root")
names = {}
for path in sorted((folder / "perch/translations").glob("*.yaml")):
    names[path.stem] = load(path.relative_to(folder))
    translation(names[path.stem])


def same(schema, texts, where):
    """Every option has a name in every language, and no other has."""
    if set(schema) != set(texts):
        raise vol.Invalid(f"{where}: {sorted(set(schema) ^ set(texts))}")
    for key, kind in schema.items():
        if isinstance(kind, dict):
            same(kind, texts[key].get("fields", {}), f"{where}.{key}")


if "en" not in names or len(names) < 2:
    raise SystemExit("there are no translations")
for language, texts in names.items():
    same(app["schema"], texts["configuration"], language)
profile = (folder / "perch/apparmor.txt").read_text(encoding="utf-8")
if len(re.findall(r"^profile ", profile, re.M)) != 1 or profile.count("{") != profile.count("}"):
    raise SystemExit("apparmor.txt has to have one profile, which is closed")
if app["slug"] != "perch" or not re.search(r"^profile perch ", profile, re.M):
    raise SystemExit("the profile's name is not the app's")
for name in ("DOCS.md", "README.md", "icon.png", "logo.png"):
    if not (folder / "perch" / name).stat().st_size:
        raise SystemExit(f"{name} is empty")
if "--options" in sys.argv:
    options = validated(app["schema"], {**app["options"], **json.load(sys.stdin)}, "root")
json.dump(options, sys.stdout, ensure_ascii=False, indent=2)
