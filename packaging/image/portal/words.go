package main

import (
	"errors"
	"net/http"
	"strings"

	"perch/language"
)

// wordsFor returns the texts in the language chosen on the page, or else in one of the browser's
// languages.
func (p *page) wordsFor(r *http.Request) *language.Words {
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

// fieldProblem returns the sentence for an invalid field.
func fieldProblem(w *language.Words, field string) string {
	return w.Message(map[string]string{
		fieldToken: "portal.old", fieldNetwork: "portal.no_network", fieldSSID: "portal.bad_network", fieldKey: "portal.bad_key",
		fieldCountry: "portal.no_country", fieldName: "portal.bad_name", fieldLanguage: "portal.no_language",
	}[field])
}

// joinProblem returns the sentence for a network that was not joined.
func joinProblem(w *language.Words, failed error, network string) string {
	key := "portal.not_joined"
	for why, known := range map[error]string{errKey: "portal.wrong_key", errUnheard: "portal.unheard", errAddress: "portal.no_address"} {
		if errors.Is(failed, why) {
			key = known
		}
	}
	return w.Message(key, "network", network)
}

// label returns a network's text in the list.
func (h scanned) label(w *language.Words) string {
	key := "portal.signal"
	if h.Unfit {
		key = "portal.unfit"
	} else if !h.Key {
		key = "portal.open"
	}
	return w.Message(key, "network", plain(h.SSID), "percent", h.Signal)
}
