package agent

import (
	"strings"
	"unicode"

	"perch/device"
)

// vocabulary is the words by which answers are judged, in English and German
// together, because a person who is asked in one may well say okay in the other.
// An answer is a yes only if all its words are known; a single no makes it a no.
// An answer that is not understood costs another question; one that is
// misunderstood may cost a file.
type vocabulary struct {
	yes, no, fillers map[string]bool
	yesPhrases       []string
}

func answers() vocabulary {
	return vocabulary{
		yes: set(`yes yeah yep yup sure okay ok certainly absolutely allow allowed affirmative
			ja jawohl jo klar gern gerne natürlich einverstanden erlaubt genehmigt`),
		no: set(`no nope nah not never don't dont stop deny denied cancel refuse wait can't cannot won't mustn't shouldn't without
			nein nö nee ne nicht nie niemals kein keine keinen stopp halt lass warte abbrechen ungern`),
		fillers: set(`please you may can do it that this go ahead now just so i me is fine for of course then well oh ah um uh hm
			the thanks thank alright right all
			bitte das es du darfst kannst mach machen tu ruhig doch mal ich in ordnung für jetzt na dann auch danke alles aber den`),
		yesPhrases: []string{"go ahead", "do it", "go for it", "of course", "you may",
			"mach es", "mach das", "in ordnung", "tu es"},
	}
}

func set(words string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields(words) {
		all[w] = true
	}
	return all
}

// YesOrNo interprets an answer in English or German; yes is false if not
// understood.
func YesOrNo(answer string) (yes, understood bool) {
	words := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(device.Clip(answer, 400), "’", "'")), func(r rune) bool {
		return !unicode.IsLetter(r) && r != '\''
	})
	known, strange := answers(), false
	for _, w := range words {
		switch {
		case known.no[w]:
			return false, true
		case known.yes[w]:
			yes = true
		case !known.fillers[w]:
			strange = true
		}
	}
	line := " " + strings.Join(words, " ") + " "
	for _, phrase := range known.yesPhrases {
		yes = yes || strings.Contains(line, " "+phrase+" ")
	}
	if strange || !yes {
		return false, false
	}
	return true, true
}
