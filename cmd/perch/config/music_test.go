package config_test

import (
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/must"
)

func TestMusicIsChecked(t *testing.T) {
	for entry, want := range map[string]string{
		`{name: jazz, source: "https://example.com/jazz.mp3"}`: "",
		`{name: Радио 4, source: /srv/music}`:                  "",
		`{name: "", source: /srv/music}`:                       "music.0.name: the name of music is what people call it",
		`{name: "a\nb", source: /srv/music}`:                   "music.0.name",
		`{name: Off, source: /srv/music}`:                      `music.0.name: "off" stands for no music`,
		`{name: a, source: /a}, {name: A, source: /b}`:         "music.1.name: A is listed twice",
		`{name: a, source: music/a.mp3}`:                       "music.0.source: a source is an address that begins with http",
		`{name: a, source: "file:///etc/passwd"}`:              "music.0.source",
		`{name: a, source: "rtsp://example.com/"}`:             "music.0.source",
		`{name: a, source: "http:///jazz"}`:                    "music.0.source",
		`{name: a}`:                                            "music.0.source",
		`{name: a, url: "http://example.com/"}`:                "url",
	} {
		_, err := appliancetest.Load(appliancetest.WriteConfig(t, "music: ["+entry+"]\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", entry, err)
		}
	}
	c := must.Value(appliancetest.Load(appliancetest.WriteConfig(t, "music: [{name: jazz, source: /srv/jazz}]\n"), "PERCH_MUSIC_0_SOURCE=/srv/other"))(t)
	if s := c.MusicSources(); len(s) != 1 || s[0].Name != "jazz" || s[0].Source != "/srv/other" {
		t.Errorf("%+v", s)
	}
}
