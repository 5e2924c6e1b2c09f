package main

import (
	"errors"
	"net/http"
	"strings"

	"perch/language"
)

// wordsFor returns the texts of the page in the language that the visitor chose or, by default,
// in one of the browser's languages.
func (p *page) wordsFor(r *http.Request) *language.Words {
	return p.words.In(append([]string{r.URL.Query().Get("lang")}, language.Accepted(r.Header.Get("Accept-Language"))...)...)
}

// regionOf returns the country at the end of the first language tag in an Accept-Language header that
// ends with one, such as CH in de-CH. It returns "" if no tag does.
func regionOf(acceptLanguage string) string {
	for item := range strings.SplitSeq(acceptLanguage, ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(item), ";")
		if parts := strings.Split(tag, "-"); len(parts) > 1 && len(parts[len(parts)-1]) == 2 {
			return strings.ToUpper(parts[len(parts)-1])
		}
	}
	return ""
}

// fieldProblem returns the message for an invalid field.
func fieldProblem(w *language.Words, field string) string {
	return w.Message(map[string]string{
		fieldToken: "portal.old", fieldNetwork: "portal.no_network", fieldSSID: "portal.bad_network", fieldKey: "portal.bad_key",
		fieldCountry: "portal.no_country", fieldName: "portal.bad_name", fieldLanguage: "portal.no_language",
	}[field])
}

// joinProblem returns the message for a network that was not joined because of err.
func joinProblem(w *language.Words, err error, network string) string {
	key := "portal.not_joined"
	for reason, reasonKey := range map[error]string{errWrongKey: "portal.wrong_key", errNotFound: "portal.unheard", errNoAddress: "portal.no_address"} {
		if errors.Is(err, reason) {
			key = reasonKey
		}
	}
	return w.Message(key, "network", network)
}

// label returns the text for the network in the list of networks.
func (s scanned) label(w *language.Words) string {
	key := "portal.signal"
	if s.Unfit {
		key = "portal.unfit"
	} else if !s.Key {
		key = "portal.open"
	}
	return w.Message(key, "network", plain(s.SSID), "percent", s.Signal)
}
