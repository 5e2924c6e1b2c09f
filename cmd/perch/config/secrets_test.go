package config

import (
	"encoding/json"
	"strings"
	"testing"

	"perch/must"
)

// TestSecretsAreNotShown: secrets are masked in every form in which YAML allows to write them.
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

// ownMask returns a text in which its own secrets are masked.
func ownMask(text string) (string, error) {
	return maskSecrets(text, secretsOf(&Config{}, []byte(text)))
}

// FuzzMask checks that maskSecrets leaves none of a text's secrets in its result.
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
		shown, err := maskSecrets(text, secrets)
		if err != nil {
			return
		}
		for secret := range secrets.texts {
			if len(secret) >= minMaskedLength && !strings.Contains(Mask, secret) && strings.Contains(shown, secret) {
				t.Fatalf("%q\nshown\n%q\nholds %q", text, shown, secret)
			}
		}
	})
}

// TestAMaskedSecretIsShownNowhere: a secret is masked wherever it appears: at another key with an alias, a merge or
// a copy of it, in a comment, in a fault, and in the result of a check or a change.
func TestAMaskedSecretIsShownNowhere(t *testing.T) {
	const secret = "geheim-geheim-1"
	for name, text := range map[string]string{
		"an alias":                  "skins: {key: &k geheim-geheim-1}\nname: *k\n",
		"an alias of what comes":    "name: &k geheim-geheim-1\nskins: {key: *k}\n",
		"an alias in a list":        "bridge: {key: &k geheim-geheim-1}\nallowed_hosts: [*k]\n",
		"an alias of a section":     "brains: [{kind: openai, env: &e {ANY: geheim-geheim-1}, extra: *e}]\n",
		"a merge":                   "brains: [{kind: openai, env: &e {ANY: geheim-geheim-1}, extra: {<<: *e, x: 1}}]\n",
		"an alias as a key":         "skins: {key: &k geheim-geheim-1}\nbrains: [{kind: openai, extra: {*k : 1}}]\n",
		"a copy":                    "skins: {key: geheim-geheim-1}\nname: geheim-geheim-1\n",
		"a copy in quotes":          "skins: {key: \"geheim\\x2dgeheim-1\"}\nname: 'geheim-geheim-1'\n",
		"a part of another":         "skins: {key: geheim-geheim-1}\npublic_url: http://geheim-geheim-1.local\n",
		"a copy in a comment":       "skins: {key: geheim-geheim-1} # geheim-geheim-1, as on the other Pi\n# was geheim-geheim-1\nname: x\n",
		"an alias at a wrong place": "skins: {key: &k geheim-geheim-1}\nadoption: *k\nlisten: [*k]\nlanguage: [*k]\nrobots: {idle: *k}\n",
		"an alias at no key":        "skins: {key: &k geheim-geheim-1}\nnothing: *k\n*k : 1\n",
		"a copy as a key":           "skins: {key: geheim-geheim-1}\ngeheim-geheim-1: 1\n",
		"an anchor of its name":     "skins: {key: &geheim-geheim-1 geheim-geheim-1}\nname: *geheim-geheim-1\n",
		"a copy over lines":         "skins: {key: geheim-geheim-1}\nname: geheim-geheim-1\n [\n",
		"no YAML":                   "skins: {key: geheim-geheim-1\nname: geheim-geheim-1\n",
		"a block":                   "skins:\n  key: geheim-geheim-1\npersona: |\n  you are geheim-geheim-1\n",
	} {
		o := overlaid(t, text)
		shown := must.Value(o.Read())(t)
		if shown.Text == "" && shown.Why == "" {
			t.Errorf("%s: nothing says why the text is not shown", name)
		}
		checked := must.Value(o.Check(text))(t)
		changes, faults, err := o.Change(map[string]any{"name": secret, "adoption": secret, "robots.idle": secret, "nothing": 1})
		must.Succeed(t, err)
		for what, told := range map[string]any{"shown": shown, "checked": checked, "changed": []any{changes, faults}} {
			all, err := json.Marshal(told)
			if at := strings.Index(string(all), secret); err != nil || at >= 0 {
				t.Errorf("%s: %s is %s (%v)", name, what, string(all)[max(0, at-200):min(len(all), at+200)], err)
			}
		}
	}
}

// TestASecretOfTheEnvironmentIsShownNowhere: a secret that a variable sets is also masked in the owner's file.
func TestASecretOfTheEnvironmentIsShownNowhere(t *testing.T) {
	o := overlaid(t, "name: geheim-geheim-1\npublic_url: http://geheim-geheim-2.local\n", "PERCH_SKINS_KEY=geheim-geheim-1",
		"PERCH_MQTT_BROKER=mqtt://me:geheim-geheim-2@host:x")
	shown := must.Value(o.Read())(t)
	for _, part := range []any{shown.Keys, shown.Faults, shown.Warnings} {
		if all, _ := json.Marshal(part); strings.Contains(string(all), "geheim-geheim") {
			t.Errorf("shown is %s", all)
		}
	}
}

// TestAShortSecretHidesNoWords: a short secret is masked where it is the whole value of a key, and not where it is
// a part of another word.
func TestAShortSecretHidesNoWords(t *testing.T) {
	const text = "# the perch in the hall\nname: hall\nskins: {key: hall}\nbrains: [{kind: openai, env: {HOST: localhost}, url: \"http://localhost\"}]\n"
	o := overlaid(t, text)
	shown := must.Value(o.Read())(t)
	want := "# the perch in the hall\nname: ••••••\nskins: {key: ••••••}\nbrains: [{kind: openai, env: {HOST: ••••••}, url: \"http://localhost\"}]\n"
	if shown.Text != want {
		t.Errorf("shown is %q, want %q", shown.Text, want)
	}
}

// TestASecretOfTheOverlayIsShownNowhere: a secret in the overlay is also masked in the owner's file.
func TestASecretOfTheOverlayIsShownNowhere(t *testing.T) {
	o := overlaid(t, "name: hall # geheim-geheim-1\n")
	if _, faults, err := o.Change(map[string]any{"skins.key": "geheim-geheim-1", "mqtt.password": "geheim-geheim-2"}); err != nil || len(faults) > 0 {
		t.Fatal(faults, err)
	}
	shown, err := o.Read()
	if err != nil || shown.Text != "name: hall # ••••••\n" {
		t.Errorf("shown is %q, %v", shown.Text, err)
	}
	if all, _ := json.Marshal(shown); strings.Contains(string(all), "geheim-geheim") {
		t.Errorf("shown is %s", all)
	}
}
