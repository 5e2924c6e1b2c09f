package config

import (
	"strings"
	"testing"
)

// TestSecretsAreNotShown, in whatever form they are written.
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
		"name: \"a # key: open\" # password: geheim\n":              "name: \"a # key: ••••••\" # password: ••••••\n",
		"# mqtt://me:geheim@host\nname: ü\n":                        "# mqtt://••••••@host\nname: ü\n",
		"firmware: {public_key: abc}\n":                             "firmware: {public_key: abc}\n",
	} {
		shown, err := ownMask(text)
		if err != nil || shown != want {
			t.Errorf("%q is shown (%v) as\n%q, want\n%q", text, err, shown, want)
		}
	}
	for _, text := range []string{"skins:\n  key: |\n    geheim\n", "skins:\n  key: \"ge\n    heim\"\n", "skins:\n  key: ge\n    heim\n",
		"skins: {key: ge heim-geheim}\nname: ge\n  heim-geheim\n", "name: [\nkey: geheim\n"} {
		if shown, err := ownMask(text); err == nil {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
	if shown, err := ownMask(Sample()); err != nil || shown != Sample() {
		t.Errorf("the sample is not shown as it is (%v)", err)
	}
}

// ownMask is a text without the secrets that are in it.
func ownMask(text string) (string, error) { return masked(text, secretsOf(&Config{}, []byte(text))) }

// FuzzMask: whatever the text, no secret of it is in what is shown.
func FuzzMask(f *testing.F) {
	for _, text := range []string{"brains:\n- kind: openai\n  key: geheim # key: geheim\n", "a: &a [x,x]\nb: &b [*a,*a]\nc: *b\n",
		"key: |\n  geheim\n", "key: \"ge\\x68eim\"\nenv: {A: geheim}\n", "key: 'gehe''im' # gehe'im\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			t.Skip("longer than a person writes")
		}
		secrets := secretsOf(&Config{}, []byte(text))
		shown, err := masked(text, secrets)
		if err != nil {
			return
		}
		for secret := range secrets.whole {
			if len(secret) >= shortestSecret && !strings.Contains(Mask, secret) && strings.Contains(shown, secret) {
				t.Fatalf("%q\nshown\n%q\nholds %q", text, shown, secret)
			}
		}
	})
}
