package config

import (
	"strings"
	"testing"
)

// TestSecretsAreNotShown, in whatever form they are written, and are there again when
// the text comes back as it was shown.
func TestSecretsAreNotShown(t *testing.T) {
	for text, want := range map[string]string{
		"skins:\n  key: geheim-1 # the skins'\n":                    "skins:\n  key: •••••• # the skins'\n",
		"skins: {key: \"geheim # \\\" 1\", query_token: true}\n":    "skins: {key: ••••••, query_token: true}\n",
		"skins: {key: 'geheim''1', key_file: /x}\n":                 "skins: {key: ••••••, key_file: /x}\n",
		"tls: {key: /etc/x.pem}\nskins: {key: \"\"}\n":              "tls: {key: /etc/x.pem}\nskins: {key: \"\"}\n",
		"mqtt: {password: !!str geheim}\n":                          "mqtt: {password: !!str ••••••}\n",
		"x: &a geheim\nmqtt:\n  password: *a\n":                     "x: &a ••••••\nmqtt:\n  password: *a\n",
		"mqtt: {broker: \"mqtt://me:geheim@h\"}\n":                  "mqtt: {broker: ••••••}\n",
		"brains: [{url: \"http://h/?k=geheim\"}]\n":                 "brains: [{url: ••••••}]\n",
		"brains: [{env: {ANY: geheim}}]\n":                          "brains: [{env: {ANY: ••••••}}]\n",
		"brains: [{command: [x, --api-key, geheim, --token=ge]}]\n": "brains: [{command: [x, --api-key, ••••••, ••••••]}]\n",
		"brains: [{extra: {api_key: geheim, max_tokens: 5}}]\n":     "brains: [{extra: {api_key: ••••••, max_tokens: 5}}]\n",
		"# key: geheim\nname: a # token=geheim, and more\n":         "# key: ••••••\nname: a # token=••••••, and more\n",
		"name: \"a # key: open\" # password: geheim\n":              "name: \"a # key: open\" # password: ••••••\n",
		"# mqtt://me:geheim@host\nname: ü\n":                        "# mqtt://••••••@host\nname: ü\n",
		"name: [\nkey: geheim\n":                                    "name: [\nkey: ••••••\n",
		"firmware: {public_key: abc}\n":                             "firmware: {public_key: abc}\n",
	} {
		shown, err := masked(text)
		if err != nil || shown != want {
			t.Errorf("%q is shown (%v) as\n%q, want\n%q", text, err, shown, want)
		}
		if back, lost := restored(shown, text); back != text || len(lost) > 0 {
			t.Errorf("%q comes back as %q, lost %v", text, back, lost)
		}
	}
	for _, text := range []string{"skins:\n  key: |\n    geheim\n", "skins:\n  key: \"ge\n    heim\"\n", "skins:\n  key: ge\n    heim\n"} {
		if shown, err := masked(text); err == nil {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
	if shown, err := masked(sample(t)); err != nil || shown != sample(t) {
		t.Errorf("the sample is not shown as it is (%v)", err)
	}
}

// TestASecretStaysWithItsOwn: where entries of a list change places, each keeps its
// key; a key is given to no other server.
func TestASecretStaysWithItsOwn(t *testing.T) {
	const one, two = "{kind: openai, url: \"http://one\", key: secret-1}", "{kind: openai, url: \"http://two\", key: secret-2}"
	before := "brains:\n- " + one + "\n- " + two + "\n"
	shown := func(list ...string) string {
		text, err := masked("brains:\n- " + strings.Join(list, "\n- ") + "\n")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	elsewhere := strings.Replace(two, "two", "three", 1)
	for text, want := range map[string]string{
		shown(two, one):       "brains:\n- " + two + "\n- " + one + "\n",
		shown(two):            "brains:\n- " + two + "\n",
		shown(one, elsewhere): "brains:\n- " + one + "\n- " + elsewhere + "\n",
	} {
		if got, lost := restored(text, before); got != want || len(lost) > 0 {
			t.Errorf("%q is %q, lost %v", text, got, lost)
		}
	}
	for _, text := range []string{shown(elsewhere), shown(one, two, elsewhere), shown(two, elsewhere), "name: ••••••\n", "skins: {key: ••••••}\n",
		"brains: [{kind: openai, url: \"http://one\", key: x••••••}]\n"} {
		if got, lost := restored(text, before); len(lost) == 0 {
			t.Errorf("%q is taken, as %q", text, got)
		}
	}
}
