// Package language contains the words of the appliance in each language: what it says
// and shows, and how a time, a date and a duration are spoken. A catalogue is a folder
// named for its BCP 47 tag:
//
//   - spoken.yaml is what robots say, as people speak; an emoji for the face may
//     come first
//   - shown.yaml is what programs show
//
// In a message, {name} is a value, and {n, one: a minute, other: # minutes} is the
// form for a number by the plural rules of CLDR, with # as the number. Messages are
// whole sentences, never fragments to be joined. Every catalogue has every message,
// with the same values; a test checks that.
package language

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// Tag is the BCP 47 tag of a language that has a catalogue, such as "zh-Hans".
type Tag string

// The languages with a catalogue.
const (
	English  Tag = "en"
	German   Tag = "de"
	Japanese Tag = "ja"
	Chinese  Tag = "zh-Hans"
	Spanish  Tag = "es"
	French   Tag = "fr"
)

// All lists the languages with a catalogue, English first.
func All() []Tag { return []Tag{English, German, Japanese, Chinese, Spanish, French} }

// Match returns the catalogue for the first tag that has one: "de-AT" is German; "zh" and
// "zh-CN" are "zh-Hans". Other tags such as "xx" match nothing.
func Match(tags ...string) (Tag, bool) { return Among(All(), tags...) }

// Among returns the first language of a list that matches one of the tags or English
// names, as the list writes it.
func Among[T ~string](list []T, tags ...string) (fitting T, found bool) {
	var known []language.Tag
	for _, t := range list {
		known = append(known, language.Make(string(t)))
	}
	matcher := language.NewMatcher(known)
	for _, tag := range tags {
		if len(tag) > maxTag {
			continue
		}
		if own := spokenNames()[strings.ToLower(tag)]; own != "" {
			tag = own
		}
		if wanted, err := language.Parse(tag); err == nil && wanted != language.Und {
			_, i, sure := matcher.Match(wanted)
			if sure > language.No && base(wanted) == base(known[i]) {
				return list[i], true
			}
		}
	}
	return "", false
}

// base returns a tag's language without script and region. Other languages that CLDR
// considers understood, such as English in Iceland, do not match.
func base(tag language.Tag) string {
	b, _ := tag.Base()
	return b.String()
}

// spokenNames maps the tags of languages to their English names, which Whisper servers
// use.
func spokenNames() map[string]string {
	return map[string]string{"english": "en", "german": "de", "japanese": "ja", "chinese": "zh", "mandarin": "zh", "spanish": "es", "french": "fr",
		"italian": "it", "portuguese": "pt", "dutch": "nl", "polish": "pl", "russian": "ru", "ukrainian": "uk", "korean": "ko", "swedish": "sv",
		"danish": "da", "norwegian": "no", "finnish": "fi", "czech": "cs", "hungarian": "hu", "turkish": "tr", "arabic": "ar", "hindi": "hi",
		"greek": "el", "romanian": "ro", "catalan": "ca"}
}

// Bounds of an untrusted header: bytes of it and of each tag, and number of languages.
const (
	maxHeader   = 512
	maxTag      = 35
	maxAccepted = 10
)

// Accepted lists the tags of an Accept-Language header, the most preferred first.
// Invalid tags are left out, and so is everything after the first 512 bytes or ten
// entries.
func Accepted(header string) (tags []string) {
	if len(header) > maxHeader {
		header = header[:strings.LastIndexByte(header[:maxHeader], ',')+1]
	}
	type accepted struct {
		tag    string
		weight float32
	}
	var all []accepted
	for i, entry := range strings.SplitN(header, ",", maxAccepted+1) {
		if i == maxAccepted {
			break
		}
		if tag, weight, err := language.ParseAcceptLanguage(entry); err == nil && len(tag) == 1 {
			all = append(all, accepted{tag[0].String(), weight[0]})
		}
	}
	slices.SortStableFunc(all, func(a, b accepted) int { return cmp.Compare(b.weight, a.weight) })
	for _, a := range all {
		tags = append(tags, a.tag)
	}
	return tags
}
