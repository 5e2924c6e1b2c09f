package skill

import "strings"

// phrases are what the built-in skills say.
type phrases struct {
	hello   string            // to nobody in particular
	helloTo string            // {name}
	knows   string            // {skills} are the names of those that the character has
	between string            // between two of them
	names   map[string]string // of built-in skills, where their own are no words of the language
	kept    string            // a fact
	signed  string            // a message
}

// phrasesIn are those of a language, given by its BCP 47 tag: one of the languages
// that moods are read in, and English for all others.
func phrasesIn(language string) phrases {
	tag, _, _ := strings.Cut(strings.ToLower(language), "-")
	if p, known := foreignPhrases()[tag]; known {
		return p
	}
	return phrases{hello: "Hello!", helloTo: "Hello, {name}!", knows: "I know how to: {skills}.", between: ", ",
		kept: "I will remember that.", signed: "I have signed it."}
}

func foreignPhrases() map[string]phrases {
	return map[string]phrases{
		"de": {hello: "Hallo!", helloTo: "Hallo, {name}!", knows: "Ich kann: {skills}.", between: ", ",
			kept: "Das merke ich mir.", signed: "Ich habe es unterschrieben.",
			names: map[string]string{"greet": "grüßen", "think": "nachdenken", "help": "helfen", "remember": "mir etwas merken",
				"sign-action": "unterschreiben"}},
		"es": {hello: "¡Hola!", helloTo: "¡Hola, {name}!", knows: "Sé hacer esto: {skills}.", between: ", ",
			kept: "Lo recordaré.", signed: "Lo he firmado.",
			names: map[string]string{"greet": "saludar", "think": "pensar", "help": "ayudar", "remember": "recordar", "sign-action": "firmar"}},
		"fr": {hello: "Bonjour !", helloTo: "Bonjour {name} !", knows: "Je sais faire ceci : {skills}.", between: ", ",
			kept: "Je m'en souviendrai.", signed: "Je l'ai signé.",
			names: map[string]string{"greet": "saluer", "think": "réfléchir", "help": "aider", "remember": "me souvenir", "sign-action": "signer"}},
		"ja": {hello: "こんにちは！", helloTo: "{name}さん、こんにちは！", knows: "できることは、{skills}です。", between: "、",
			kept: "覚えておきます。", signed: "署名しました。",
			names: map[string]string{"greet": "あいさつ", "think": "考えること", "help": "手助け", "remember": "覚えること", "sign-action": "署名"}},
		"zh": {hello: "你好！", helloTo: "{name}，你好！", knows: "我会：{skills}。", between: "、",
			kept: "我会记住的。", signed: "我已经签名了。",
			names: map[string]string{"greet": "打招呼", "think": "思考", "help": "帮忙", "remember": "记事", "sign-action": "签名"}},
	}
}
