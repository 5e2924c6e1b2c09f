package main

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"perch/language"
	"perch/packaging/image/board"
)

func values(pairs ...string) url.Values {
	v := url.Values{"network": {"486f6d65"}, "key": {"a good password"}, "country": {"DE"}, "name": {"kitchen"}, "language": {"de"}}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

func TestParseForm(t *testing.T) {
	whole := form{board.Network{SSID: "Home", Key: "a good password"}, "DE", "kitchen", "de"}
	with := func(change func(*form)) form { f := whole; change(&f); return f }
	shell := `$(reboot); rm -rf "/" | 'x'`
	for _, c := range []struct {
		v     url.Values
		want  form
		wrong string
	}{
		{v: values(), want: whole},
		{v: values("name", "", "language", ""), want: with(func(f *form) { f.name, f.language = "", "" })},
		{v: values("key", ""), want: with(func(f *form) { f.network.Key = "" })},
		{v: values("key", strings.Repeat("a1", 32)), want: with(func(f *form) { f.network.Key = strings.Repeat("a1", 32) })},
		{v: values("ssid", "Café 5"), want: with(func(f *form) { f.network.SSID, f.network.Hidden = "Café 5", true })},
		{v: values("ssid", shell), want: with(func(f *form) { f.network.SSID, f.network.Hidden = shell, true })}, // is a valid name
		{v: values("key", shell), want: with(func(f *form) { f.network.Key = shell })},
		{v: values("network", "ff000a"), want: with(func(f *form) { f.network.SSID = "\xff\x00\n" })},
		{v: values("network", ""), wrong: fieldSSID},
		{v: values("network", "xyz"), wrong: fieldNetwork},
		{v: values("network", shell), wrong: fieldNetwork},
		{v: values("ssid", strings.Repeat("x", 33)), wrong: fieldSSID},
		{v: values("ssid", strings.Repeat("ä", 17)), wrong: fieldSSID},
		{v: values("ssid", "a\nb"), wrong: fieldSSID},
		{v: values("ssid", "\xff"), wrong: fieldSSID},
		{v: values("key", "short"), wrong: fieldKey},
		{v: values("key", strings.Repeat("x", 200)), wrong: fieldKey},
		{v: values("key", "line\nbreak=1"), wrong: fieldKey},
		{v: values("country", ""), wrong: fieldCountry},
		{v: values("country", "XX"), wrong: fieldCountry},
		{v: values("country", shell), wrong: fieldCountry},
		{v: values("name", shell), wrong: fieldName},
		{v: values("name", "-x"), wrong: fieldName},
		{v: values("name", strings.Repeat("x", 64)), wrong: fieldName},
		{v: values("language", "tlh"), wrong: fieldLanguage},
		{v: values("language", shell), wrong: fieldLanguage},
		{v: url.Values{"name": {"a", "b"}}, wrong: fieldToken},
		{v: url.Values{}, wrong: fieldSSID},
	} {
		if f, wrong := parseForm(c.v); f != c.want || wrong != c.wrong {
			t.Errorf("%q: %+v, %q; want %+v, %q", c.v, f, wrong, c.want, c.wrong)
		}
	}
}

func TestCountriesAndSentencesOfEachLanguage(t *testing.T) {
	all := countries(language.English)
	for tag, want := range map[language.Tag]choice{"en": {"DE", "Germany"}, "de": {"AT", "Österreich"}, "ja": {"DE", "ドイツ"}, "zh-Hans": {"DE", "德国"},
		"es": {"DE", "Alemania"}, "fr": {"DE", "Allemagne"}} {
		own := countries(tag)
		odd := slices.ContainsFunc(own, func(c choice) bool {
			return !board.IsCountry(c.Value) || !slices.ContainsFunc(all, func(o choice) bool { return o.Value == c.Value })
		})
		if len(own) < 240 || len(own) != len(all) || !slices.Contains(own, want) || odd {
			t.Errorf("%s: %d countries", tag, len(own))
		}
	}
	p := newTestPage()
	for _, tag := range language.All() {
		w := p.words.In(string(tag))
		said := map[string]bool{}
		for _, f := range []string{fieldToken, fieldNetwork, fieldSSID, fieldKey, fieldCountry, fieldName, fieldLanguage} {
			said[fieldProblem(w, f)] = true
		}
		for _, failed := range []error{errWrongKey, errNotFound, errNoAddress, errNotJoined} {
			said[joinProblem(w, failed, "Home")] = true
		}
		if len(said) != 11 {
			t.Errorf("%s says %v", tag, said)
		}
	}
}

// FuzzForm parses arbitrary forms. The values of a valid form must fit a file of NetworkManager, and must not
// become options of programs.
func FuzzForm(f *testing.F) {
	f.Add(values().Encode())
	f.Add("ssid=%0a&key=12345678&country=DE")
	f.Add("network=00&key=%24%28reboot%29&country=GB&name=x")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		got, wrong := parseForm(v)
		if wrong != "" {
			if got != (form{}) {
				t.Errorf("%q is wrong, and taken: %+v", wrong, got)
			}
			return
		}
		var args []string
		m := board.Machine{Root: t.TempDir(), Run: func(stdin, name string, a ...string) error {
			args = append(args, a...)
			return nil
		}}
		n := got.network
		if n.SSID == "" || len(n.SSID) > 32 || len(n.Key) > 64 || n.Key != "" && len(n.Key) < 8 || strings.ContainsAny(n.Key, "\n\r\x00") {
			t.Errorf("it takes %+v", n)
		}
		if got.name != "" {
			_ = m.SetHostname(got.name)
		}
		_ = m.SetCountry(got.country)
		for _, a := range append(args, got.country, got.language) {
			if strings.HasPrefix(a, "-") || strings.ContainsAny(a, " \n\x00") {
				t.Errorf("a program is given %q", a)
			}
		}
	})
}
