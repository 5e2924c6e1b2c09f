package main

import (
	"regexp"
	"strings"
)

// spdxNames maps Debian's names of licences (in lower case) to the names of the same licences in
// SPDX.
var spdxNames = map[string]string{
	"expat": "MIT", "mit": "MIT", "x11": "X11", "isc": "ISC", "zlib": "Zlib", "apache-2.0": "Apache-2.0", "apache-2": "Apache-2.0",
	"bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause", "bsd-4-clause": "BSD-4-Clause", "bsd-4-clause-uc": "BSD-4-Clause-UC",
	"0bsd": "0BSD", "bsl-1.0": "BSL-1.0", "cc0-1.0": "CC0-1.0", "mpl-2.0": "MPL-2.0", "mpl-1.1": "MPL-1.1", "curl": "curl", "ntp": "NTP",
	"fsfap": "FSFAP", "fsfullr": "FSFULLR", "beerware": "Beerware", "unicode-dfs-2016": "Unicode-DFS-2016", "artistic-2.0": "Artistic-2.0",
	"artistic": "Artistic-1.0-Perl", "openssl": "OpenSSL", "sleepycat": "Sleepycat", "cc-by-sa-3.0": "CC-BY-SA-3.0", "cc-by-4.0": "CC-BY-4.0",
}

// gnu matches Debian's names of GNU licences.
var gnu = regexp.MustCompile(`^(a?gpl|lgpl)-v?([0-9])(\.[0-9])?(\+|-or-later|-only)?$`)

// expression converts Debian's name of one or more licences to an SPDX expression. It returns
// false if it does not know one of the licences, or if the name contains both "and" and "or".
func expression(debian string) (string, bool) {
	for _, operator := range [][2]string{{" or ", " OR "}, {" and ", " AND "}} {
		if parts := strings.Split(debian, operator[0]); len(parts) > 1 {
			for i, p := range parts {
				named, ok := expression(strings.Trim(p, ", "))
				if !ok || strings.Contains(named, " ") {
					return "", false
				}
				parts[i] = named
			}
			return strings.Join(parts, operator[1]), true
		}
	}
	name := strings.ToLower(strings.TrimSpace(debian))
	if match := gnu.FindStringSubmatch(name); match != nil {
		minor, suffix := match[3], "-only"
		if minor == "" {
			minor = ".0"
		}
		if match[4] == "+" || match[4] == "-or-later" {
			suffix = "-or-later"
		}
		return strings.ToUpper(match[1]) + "-" + match[2] + minor + suffix, true
	}
	named, ok := spdxNames[name]
	return named, ok
}

// phrases lists phrases from the texts of licences. Each phrase identifies its licence.
var phrases = []struct{ text, licence string }{
	{"apache license version 2.0", "Apache-2.0"},
	{"licensed under the apache license version 2.0", "Apache-2.0"},
	{"permission is hereby granted, free of charge, to any person obtaining a copy of this software", "MIT"},
	{"mozilla public license version 2.0", "MPL-2.0"},
	{"eclipse public license - v 2.0", "EPL-2.0"},
	{"permission to use, copy, modify, and distribute this software for any purpose with or without fee", "ISC"},
	{"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee", "ISC"},
}

// separators matches white space and comment characters.
var separators = regexp.MustCompile(`[\s*#>/]+`)

// recognize returns the SPDX names of the licences in a text, or nil if it recognizes none.
func recognize(text string) (licences []string) {
	flat := strings.ReplaceAll(strings.ToLower(separators.ReplaceAllString(text, " ")), "license, version", "license version")
	for _, p := range phrases {
		if strings.Contains(flat, p.text) {
			licences = append(licences, p.licence)
		}
	}
	if strings.Contains(flat, "redistribution and use in source and binary forms") {
		if strings.Contains(flat, "endorse or promote") {
			return append(licences, "BSD-3-Clause")
		}
		licences = append(licences, "BSD-2-Clause")
	}
	return licences
}
