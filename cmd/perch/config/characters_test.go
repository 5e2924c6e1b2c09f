package config_test

import (
	"testing"

	"perch/agent"
	"perch/agent/manifest"
	"perch/cmd/perch/appliancetest"
	"perch/must"
)

// TestBrainOfAManifest: a brain of the kind openai has the provider local if its server is in the local network,
// and openai otherwise. If no brain has the provider openai, a local one is used for a manifest with that provider.
func TestBrainOfAManifest(t *testing.T) {
	const here, elsewhere = `{kind: openai, url: "http://192.168.1.5:8080/v1", model: m}`,
		`{kind: openai, url: "https://api.example.com/v1", model: m}`
	for _, c := range []struct{ brains, provider, want string }{
		{here + ", " + elsewhere, "openai", "openai 2"},
		{here + ", " + elsewhere, "local", "openai"},
		{here, "openai", "openai"},
		{elsewhere, "local", ""},
		{here, "anthropic", ""},
	} {
		loaded := must.Value(appliancetest.Load(appliancetest.WriteConfig(t, "brains: ["+c.brains+"]")))(t)
		got := loaded.ResolveCharacter("leo", manifest.Manifest{Name: "Leo", Brain: manifest.Brain{Provider: c.provider}}, agent.Persona{})
		if got.First != c.want {
			t.Errorf("%s of %s: %q, want %q", c.provider, c.brains, got.First, c.want)
		}
	}
}
