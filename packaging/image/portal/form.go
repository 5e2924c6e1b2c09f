package main

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"perch/language"
	"perch/packaging/image/board"
)

// form is the submitted form. Empty fields were not filled in.
type form struct {
	network  board.Network
	country  string
	name     string // the appliance's
	language string // the appliance's
}

// Fields of the form.
const (
	fieldToken    = "token"
	fieldNetwork  = "network" // a listed network, its bytes in hexadecimal digits
	fieldSSID     = "ssid"    // typed, perhaps of a hidden network
	fieldKey      = "key"
	fieldCountry  = "country"
	fieldName     = "name"
	fieldLanguage = "language"
)

// choice is an option of a field.
type choice struct{ Value, Name string }

//go:embed countries
var countryLists embed.FS

// countries returns all countries, named in a language and sorted in that language.
func countries(tag language.Tag) (all []choice) {
	list, err := countryLists.ReadFile("countries/" + string(tag) + ".txt")
	if err != nil {
		panic(err) // a test checks that each language has one
	}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		if code, name, is := strings.Cut(lines.Text(), "\t"); is {
			all = append(all, choice{code, name})
		}
	}
	return all
}

// parseForm parses a form. It returns the first invalid field, if any, with an empty form.
func parseForm(v url.Values) (f form, wrong string) {
	for _, all := range v {
		if len(all) > 1 {
			return form{}, fieldToken // a browser sends each field once
		}
	}
	f = form{country: v.Get(fieldCountry), name: strings.TrimSpace(v.Get(fieldName)), language: v.Get(fieldLanguage)}
	f.network.Key = v.Get(fieldKey)
	if typed := v.Get(fieldSSID); typed != "" {
		f.network.SSID, f.network.Hidden = typed, true
		if !utf8.ValidString(typed) || strings.ContainsFunc(typed, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return form{}, fieldSSID
		}
	} else {
		name, err := hex.DecodeString(v.Get(fieldNetwork))
		if err != nil {
			return form{}, fieldNetwork
		}
		f.network.SSID = string(name)
	}
	known := slices.ContainsFunc(countries(language.English), func(c choice) bool { return c.Value == f.country })
	switch {
	case f.network.SSID == "" || len(f.network.SSID) > board.MostSSID:
		return form{}, fieldSSID
	case f.network.Key != "" && !board.IsKey(f.network.Key):
		return form{}, fieldKey
	case !board.IsCountry(f.country) || !known:
		return form{}, fieldCountry
	case f.name != "" && !board.IsHostname(f.name):
		return form{}, fieldName
	case f.language != "" && !slices.Contains(language.All(), language.Tag(f.language)):
		return form{}, fieldLanguage
	}
	return f, ""
}
