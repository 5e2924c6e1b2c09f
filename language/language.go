// Package language contains the sentences that the appliance says and shows, in each of
// its languages, and puts times, dates and durations into words. The catalogue of a
// language is two files in a folder with the language's BCP 47 tag as its name:
//
//   - spoken.yaml has the messages that robots say. A message may begin with an emoji,
//     which becomes the robot's face.
//   - shown.yaml has the messages that programs show.
//
// The JSON files in the folder have the words of the owner's page and of the face.
//
// In a message, {name} is replaced by a value, and {n, one: a minute, other: # minutes} by
// the plural form that CLDR's rules select for the number n, with the number in place of #.
// Programs do not join messages, except for times, dates and durations, which are values in
// other messages. Every catalogue has the same messages with the same values, which a test
// checks.
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

// Match returns the tag of the catalogue for the first of tags that has a catalogue:
// "de-AT" matches "de"; "zh" and "zh-CN" match "zh-Hans"; "xx" matches nothing.
func Match(tags ...string) (Tag, bool) { return Among(All(), tags...) }

// Among returns the language of the list that matches the first of tags with a match, in
// the spelling of the list. A tag may also be the English name of a language, such as
// "german". Tags of more than 35 bytes match nothing.
func Among[T ~string](list []T, tags ...string) (match T, found bool) {
	var supported []language.Tag
	for _, t := range list {
		supported = append(supported, language.Make(string(t)))
	}
	matcher := language.NewMatcher(supported)
	for _, tag := range tags {
		if len(tag) > maxTag {
			continue
		}
		if named := englishNames()[strings.ToLower(tag)]; named != "" {
			tag = named
		}
		if wanted, err := language.Parse(tag); err == nil && wanted != language.Und {
			_, i, confidence := matcher.Match(wanted)
			if confidence > language.No && base(wanted) == base(supported[i]) {
				return list[i], true
			}
		}
	}
	return "", false
}

// base returns the language of a tag, without the script and the region. Among compares the
// languages, because CLDR's matching also returns other languages that many people of a country
// understand, such as English for Icelandic.
func base(tag language.Tag) string {
	b, _ := tag.Base()
	return b.String()
}

// englishNames maps the English names of languages, which Whisper servers use, to tags.
func englishNames() map[string]string {
	return map[string]string{"english": "en", "german": "de", "japanese": "ja", "chinese": "zh", "mandarin": "zh", "spanish": "es", "french": "fr",
		"italian": "it", "portuguese": "pt", "dutch": "nl", "polish": "pl", "russian": "ru", "ukrainian": "uk", "korean": "ko", "swedish": "sv",
		"danish": "da", "norwegian": "no", "finnish": "fi", "czech": "cs", "hungarian": "hu", "turkish": "tr", "arabic": "ar", "hindi": "hi",
		"greek": "el", "romanian": "ro", "catalan": "ca"}
}

// Limits of tags and of Accept-Language headers, which any client may send.
const (
	maxHeader   = 512 // bytes of the header that are read
	maxTag      = 35  // length of a tag for Among, in bytes
	maxAccepted = 10  // entries of the header that are read
)

// Accepted returns the tags of an Accept-Language header, the most preferred first. It
// leaves out invalid tags. It ignores an entry that does not end within the first 512 bytes,
// and all entries after the tenth.
func Accepted(header string) (tags []string) {
	if len(header) > maxHeader {
		header = header[:strings.LastIndexByte(header[:maxHeader], ',')+1]
	}
	type accepted struct {
		tag    string
		weight float32
	}
	var entries []accepted
	for i, entry := range strings.SplitN(header, ",", maxAccepted+1) {
		if i == maxAccepted {
			break
		}
		if tag, weight, err := language.ParseAcceptLanguage(entry); err == nil && len(tag) == 1 {
			entries = append(entries, accepted{tag[0].String(), weight[0]})
		}
	}
	slices.SortStableFunc(entries, func(a, b accepted) int { return cmp.Compare(b.weight, a.weight) })
	for _, e := range entries {
		tags = append(tags, e.tag)
	}
	return tags
}
