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

// form is a submitted form. An optional field that was not filled in is empty.
type form struct {
	network  board.Network
	country  string
	name     string // new name of the appliance; may be empty
	language string // new language of the appliance; may be empty
}

// Names of the form's fields.
const (
	fieldToken    = "token"
	fieldNetwork  = "network" // network chosen from the list, as hexadecimal digits
	fieldSSID     = "ssid"    // network typed by the user, which may be hidden
	fieldKey      = "key"
	fieldCountry  = "country"
	fieldName     = "name"
	fieldLanguage = "language"
)

// choice is an option of a selection field.
type choice struct{ Value, Name string }

//go:embed countries
var countryLists embed.FS

// countries returns all countries, with names in the given language and sorted by name.
func countries(tag language.Tag) (choices []choice) {
	list, err := countryLists.ReadFile("countries/" + string(tag) + ".txt")
	if err != nil {
		panic(err) // cannot happen: a test checks that each language has a list
	}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		if code, name, ok := strings.Cut(lines.Text(), "\t"); ok {
			choices = append(choices, choice{code, name})
		}
	}
	return choices
}

// parseForm parses a form. If a field is invalid, it returns an empty form and the name of that
// field.
func parseForm(v url.Values) (f form, invalidField string) {
	for _, values := range v {
		if len(values) > 1 {
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
	isListed := slices.ContainsFunc(countries(language.English), func(c choice) bool { return c.Value == f.country })
	switch {
	case f.network.SSID == "" || len(f.network.SSID) > board.MaxSSID:
		return form{}, fieldSSID
	case f.network.Key != "" && !board.IsKey(f.network.Key):
		return form{}, fieldKey
	case !board.IsCountry(f.country) || !isListed:
		return form{}, fieldCountry
	case f.name != "" && !board.IsHostname(f.name):
		return form{}, fieldName
	case f.language != "" && !slices.Contains(language.All(), language.Tag(f.language)):
		return form{}, fieldLanguage
	}
	return f, ""
}
