package main

import (
	"errors"
	"net/http"
	"strings"

	"perch/language"
)

// asked returns the texts in the language of a browser: by its choice on the page, or else by
// its languages.
func (p *page) asked(r *http.Request) *language.Words {
	return p.words.In(append([]string{r.URL.Query().Get("lang")}, language.Accepted(r.Header.Get("Accept-Language"))...)...)
}

// regionOf returns the country of the first requested language that names one.
func regionOf(asked string) string {
	for one := range strings.SplitSeq(asked, ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(one), ";")
		if parts := strings.Split(tag, "-"); len(parts) > 1 && len(parts[len(parts)-1]) == 2 {
			return strings.ToUpper(parts[len(parts)-1])
		}
	}
	return ""
}

// amiss returns the sentence for an invalid field.
func amiss(w *language.Words, f field) string {
	switch f {
	case fieldNetwork:
		return w.Message("portal.no_network")
	case fieldSSID:
		return w.Message("portal.bad_network")
	case fieldKey:
		return w.Message("portal.bad_key")
	case fieldCountry:
		return w.Message("portal.no_country")
	case fieldName:
		return w.Message("portal.bad_name")
	case fieldLanguage:
		return w.Message("portal.no_language")
	}
	return w.Message("portal.old")
}

// why returns the sentence for a failure.
func why(w *language.Words, failed error, network string) string {
	switch {
	case errors.Is(failed, errKey):
		return w.Message("portal.wrong_key", "network", network)
	case errors.Is(failed, errUnheard):
		return w.Message("portal.unheard", "network", network)
	case errors.Is(failed, errAddress):
		return w.Message("portal.no_address", "network", network)
	}
	return w.Message("portal.not_joined", "network", network)
}

// label returns a network's text in the list.
func (h heard) label(w *language.Words) string {
	key := "portal.signal"
	if h.Unfit {
		key = "portal.unfit"
	} else if !h.Key {
		key = "portal.open"
	}
	return w.Message(key, "network", plain(h.SSID), "percent", h.Signal)
}
