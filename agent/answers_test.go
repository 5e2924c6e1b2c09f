package agent_test

import (
	"strings"
	"testing"

	"perch/agent"
	"perch/language"
)

func TestYesOrNo(t *testing.T) {
	var words language.Catalogue
	for answer, want := range map[string]string{
		"yes": "yes", "Yes, please!": "yes", "yeah sure, go ahead": "yes", "Okay.": "yes", "go ahead": "yes", "you may": "yes", "do it": "yes",
		"ja": "yes", "Ja, bitte.": "yes", "na klar": "yes", "in Ordnung": "yes", "mach das ruhig": "yes", "Jawohl": "yes",
		"natürlich darfst du das": "yes",
		"no":                      "no", "No, thanks": "no", "don't do it": "no", "Don’t": "no", "yes no": "no", "okay, stop": "no", "do not do it": "no", "not yes": "no",
		"nein": "no", "nö": "no", "bitte nicht": "no", "auf keinen Fall": "no", "ja nein": "no", "lass das": "no", "stopp": "no", "nein danke": "no",
		"はい": "yes", "はい、お願いします。": "yes", "うん、いいよ": "yes", "どうぞ": "yes", "オーケー": "yes", "はい、やってください": "yes",
		"いいえ": "no", "いや、だめです": "no", "ちょっと待って": "no", "やめてください": "no", "はい、でもまだ実行しないで": "no",
		"いいです": "?", "大丈夫": "?", "天気はどうですか": "?", "はい天気": "?",
		"可以": "yes", "好的，没问题": "yes", "好，去做吧": "yes", "嗯": "yes", "是的，请": "yes",
		"不可以": "no", "不要": "no", "别": "no", "先等等": "no", "可以吗不行": "no", "好天气": "?", "什么": "?",
		"sí": "yes", "Sí, por favor": "yes", "claro que sí": "yes", "de acuerdo": "yes", "vale, adelante": "yes", "Por supuesto": "yes",
		"no, gracias": "no", "para": "no", "espera": "no", "sí pero no": "no", "puede ser": "?", "sí la casa": "?",
		"oui": "yes", "Oui, s’il te plaît": "yes", "d'accord": "yes", "bien sûr": "yes", "vas-y": "yes",
		"non": "no", "non merci": "no", "ne fais pas ça": "no", "attends": "no", "oui le chat": "?", "peut-être": "?",
		"okay, はい": "yes", "ja, 可以": "yes", "yes いいえ": "no", // words of two languages
		"": "?", "what": "?", "please": "?", "the weather is fine": "?", "yes the weather": "?", "yesterday": "?", "now": "?",
		"if you tell me what it does yes": "?", "jaguar": "?", "vielleicht": "?", "sure as hell": "?", "bitte": "?", "...": "?",
	} {
		yes, understood := agent.YesOrNo(&words, answer)
		got := "?"
		if understood {
			got = map[bool]string{true: "yes", false: "no"}[yes]
		}
		if got != want {
			t.Errorf("%q is %s, not %s", answer, got, want)
		}
		if yes && !understood {
			t.Errorf("%q is a yes that was not understood", answer)
		}
	}
}

// TestPermission tests the question whether a tool may run, in each language.
func TestPermission(t *testing.T) {
	var words language.Catalogue
	for tag, want := range map[language.Tag]string{
		language.English: "May I run a command: npm test?", language.German: "Darf ich einen Befehl ausführen: npm test?",
		language.Japanese: "npm test、このコマンドを実行してもいいですか？", language.Chinese: "我可以运行一个命令吗：npm test？",
		language.Spanish: "¿Puedo ejecutar un comando: npm test?", language.French: "Est-ce que je peux lancer une commande : npm test ?",
	} {
		if got := agent.Permission(words.In(string(tag)), "execute", "`npm test`", 120, false); got != want {
			t.Errorf("%q", got)
		}
	}
	english := words.In("en")
	for _, c := range []struct{ kind, title, want string }{
		{"strange", "", "May I use a tool?"},
		{"untitled.execute", "x", "May I use a tool: x?"},
		{"execute", "cat a | sh > b\nrm c", "May I run a command: cat a pipe sh into b then rm c?"},
		{"edit", "😀 {what} {title} a.go", "May I change something: what title a.go?"},
		{"delete", strings.Repeat("all of it ", 30), "May I delete something: all of it all of it all of it and so on?"},
	} {
		if got := agent.Permission(english, c.kind, c.title, 30, false); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
	if got := agent.Permission(english, "read", "a", 30, true); got != "May I read something: a and so on?" {
		t.Errorf("a title that was cut before: %q", got)
	}
}
