package main

import (
	"regexp"
	"strings"
)

// spdxNames maps Debian's names of licences, in lower case, to SPDX's.
var spdxNames = map[string]string{
	"expat": "MIT", "mit": "MIT", "x11": "X11", "isc": "ISC", "zlib": "Zlib", "apache-2.0": "Apache-2.0", "apache-2": "Apache-2.0",
	"bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause", "bsd-4-clause": "BSD-4-Clause", "bsd-4-clause-uc": "BSD-4-Clause-UC",
	"0bsd": "0BSD", "bsl-1.0": "BSL-1.0", "cc0-1.0": "CC0-1.0", "mpl-2.0": "MPL-2.0", "mpl-1.1": "MPL-1.1", "curl": "curl", "ntp": "NTP",
	"fsfap": "FSFAP", "fsfullr": "FSFULLR", "beerware": "Beerware", "unicode-dfs-2016": "Unicode-DFS-2016", "artistic-2.0": "Artistic-2.0",
	"artistic": "Artistic-1.0-Perl", "openssl": "OpenSSL", "sleepycat": "Sleepycat", "cc-by-sa-3.0": "CC-BY-SA-3.0", "cc-by-4.0": "CC-BY-4.0",
}

var gnu = regexp.MustCompile(`^(a?gpl|lgpl)-v?([0-9])(\.[0-9])?(\+|-or-later|-only)?$`)

// expression returns SPDX's expression for Debian's name of one or several licences, and false
// if SPDX has no name.
func expression(debian string) (string, bool) {
	for _, joint := range [][2]string{{" or ", " OR "}, {" and ", " AND "}} {
		if parts := strings.Split(debian, joint[0]); len(parts) > 1 {
			for i, p := range parts {
				named, ok := expression(strings.Trim(p, ", "))
				if !ok || strings.Contains(named, " ") {
					return "", false
				}
				parts[i] = named
			}
			return strings.Join(parts, joint[1]), true
		}
	}
	name := strings.ToLower(strings.TrimSpace(debian))
	if found := gnu.FindStringSubmatch(name); found != nil {
		minor, which := found[3], "-only"
		if minor == "" {
			minor = ".0"
		}
		if found[4] == "+" || found[4] == "-or-later" {
			which = "-or-later"
		}
		return strings.ToUpper(found[1]) + "-" + found[2] + minor + which, true
	}
	named, ok := spdxNames[name]
	return named, ok
}

// phrases are phrases that occur in only one licence.
var phrases = []struct{ says, licence string }{
	{"apache license version 2.0", "Apache-2.0"},
	{"licensed under the apache license version 2.0", "Apache-2.0"},
	{"permission is hereby granted, free of charge, to any person obtaining a copy of this software", "MIT"},
	{"mozilla public license version 2.0", "MPL-2.0"},
	{"eclipse public license - v 2.0", "EPL-2.0"},
	{"permission to use, copy, modify, and distribute this software for any purpose with or without fee", "ISC"},
	{"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee", "ISC"},
}

var separators = regexp.MustCompile(`[\s*#>/]+`)

// recognized returns the licences found in a text.
func recognized(licence string) (all []string) {
	flat := strings.ReplaceAll(strings.ToLower(separators.ReplaceAllString(licence, " ")), "license, version", "license version")
	for _, s := range phrases {
		if strings.Contains(flat, s.says) {
			all = append(all, s.licence)
		}
	}
	if strings.Contains(flat, "redistribution and use in source and binary forms") {
		if strings.Contains(flat, "endorse or promote") {
			return append(all, "BSD-3-Clause")
		}
		all = append(all, "BSD-2-Clause")
	}
	return all
}
