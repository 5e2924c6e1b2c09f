package main

import "strings"

// words are the page's in one language.
type words struct {
	Language, Title, Intro, Network, Choose, Typed, TypedHelp, Key, KeyHelp, Country, Name, NameHelp, Speaks, Join, Other string
	Unfit, Open, Nothing                                                                                                  string
	Taken, TakenHelp, Unspoken, Busy, Often, Old                                                                          string
	Said                                                                                                                  string // by a robot
	Wrong                                                                                                                 map[field]string
	Failed                                                                                                                map[error]string
}

var texts = map[string]words{
	"en": {
		Language: "en", Title: "Give Perch a network",
		Intro:   "This access point is open: others near here can see this page, too. It goes away once Perch has a network.",
		Network: "Wi-Fi", Choose: "Choose", Typed: "Or its name", TypedHelp: "if it is not in the list, or hides its name",
		Key: "Its password", KeyHelp: "8 to 63 characters; empty if it has none", Country: "Country",
		Name: "Name of this Perch", NameHelp: "letters, digits and hyphens; it will be at http://NAME.local:8003/",
		Speaks: "It speaks", Join: "Join", Other: "Deutsch", Unfit: "not possible here", Open: "open",
		Nothing: "No Wi-Fi was heard here.",
		Taken:   "Perch now joins %s.",
		TakenHelp: "Your phone loses this access point. After a minute Perch is at http://%s.local:8003/, in that network. " +
			"If it cannot be joined, this access point comes back and says why.",
		Unspoken: "Perch does not understand that language as it is set up now. It stays with the one that it has.",
		Busy:     "Perch is joining a network. Wait a minute.", Often: "That was too often. Wait a moment.",
		Old:  "This page was too old. Please try again.",
		Said: "I have no network. Join %s with your phone.",
		Wrong: map[field]string{
			fieldNetwork: "Choose a Wi-Fi.", fieldSSID: "Choose a Wi-Fi, or type its name: 32 bytes at most.",
			fieldKey:     "A password has 8 to 63 plain characters, or 64 hexadecimal digits.",
			fieldCountry: "Choose a country.", fieldName: "A name has letters, digits and hyphens, 63 at most.",
			fieldLanguage: "Choose a language.", fieldToken: "This page was too old. Please try again.",
		},
		Failed: map[error]string{
			errKey:     "%s was not joined: the password is wrong.",
			errUnheard: "%s was not joined: it was not found.",
			errAddress: "%s was not joined: it gives no address.",
			errJoin:    "%s was not joined.",
		},
	},
	"de": {
		Language: "de", Title: "Perch ins Netz bringen",
		Intro:   "Dieser Zugangspunkt ist offen: Auch andere in der Nähe sehen diese Seite. Er verschwindet, sobald Perch ein Netz hat.",
		Network: "WLAN", Choose: "Auswählen", Typed: "Oder sein Name", TypedHelp: "falls es nicht in der Liste steht oder seinen Namen verbirgt",
		Key: "Sein Passwort", KeyHelp: "8 bis 63 Zeichen; leer, wenn es keines hat", Country: "Land",
		Name: "Name dieses Perch", NameHelp: "Buchstaben, Ziffern und Bindestriche; er ist dann unter http://NAME.local:8003/ zu finden",
		Speaks: "Er spricht", Join: "Verbinden", Other: "English", Unfit: "hier nicht möglich", Open: "offen",
		Nothing: "Hier war kein WLAN zu hören.",
		Taken:   "Perch verbindet sich jetzt mit %s.",
		TakenHelp: "Dein Telefon verliert diesen Zugangspunkt. Nach einer Minute ist Perch in jenem Netz unter http://%s.local:8003/ zu finden. " +
			"Gelingt es nicht, so kommt dieser Zugangspunkt wieder und nennt den Grund.",
		Unspoken: "So wie Perch jetzt eingerichtet ist, versteht er diese Sprache nicht. Er bleibt bei der bisherigen.",
		Busy:     "Perch verbindet sich gerade. Bitte eine Minute warten.", Often: "Das war zu oft. Bitte einen Augenblick warten.",
		Old:  "Diese Seite war zu alt. Bitte noch einmal.",
		Said: "Ich habe kein Netz. Verbinde dein Telefon mit %s.",
		Wrong: map[field]string{
			fieldNetwork: "Bitte ein WLAN auswählen.", fieldSSID: "Bitte ein WLAN auswählen oder seinen Namen eingeben: höchstens 32 Bytes.",
			fieldKey:     "Ein Passwort hat 8 bis 63 einfache Zeichen oder 64 hexadezimale Ziffern.",
			fieldCountry: "Bitte ein Land auswählen.", fieldName: "Ein Name hat Buchstaben, Ziffern und Bindestriche, höchstens 63.",
			fieldLanguage: "Bitte eine Sprache auswählen.", fieldToken: "Diese Seite war zu alt. Bitte noch einmal.",
		},
		Failed: map[error]string{
			errKey:     "Keine Verbindung mit %s: Das Passwort ist falsch.",
			errUnheard: "Keine Verbindung mit %s: Es wurde nicht gefunden.",
			errAddress: "Keine Verbindung mit %s: Es vergibt keine Adresse.",
			errJoin:    "Keine Verbindung mit %s.",
		},
	},
}

// wordsOf are the words of the first language that is asked for and there, as
// Accept-Language names them; else English ones.
func wordsOf(asked string) words {
	for one := range strings.SplitSeq(asked, ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(one), ";")
		base, _, _ := strings.Cut(strings.ToLower(tag), "-")
		if w, is := texts[base]; is {
			return w
		}
	}
	return texts["en"]
}

// regionOf is the country of the first language that is asked for and names one.
func regionOf(asked string) string {
	for one := range strings.SplitSeq(asked, ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(one), ";")
		if parts := strings.Split(tag, "-"); len(parts) > 1 && len(parts[len(parts)-1]) == 2 {
			return strings.ToUpper(parts[len(parts)-1])
		}
	}
	return ""
}
