package drivers_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/anthropic"
	"perch/agent/assist"
	"perch/agent/openai"
	"perch/agent/thinker"
	"perch/cmd/perch/drivers"
	"perch/driver"
	"perch/must"
)

// declared holds the description in a driver.
type declared struct {
	list, kind, sample string
	runs               []string
	fields             []driver.Field
}

func add[S, E any](all []declared, list string, of driver.List[S, E]) []declared {
	for _, d := range of {
		all = append(all, declared{list, d.Kind, d.Sample, d.Runs, of.Fields(d.Kind)})
	}
	return all
}

// TestDriversAreDeclaredWhole: every driver lists the programs that it needs, documents its keys, and uses only these
// keys in its sample entries.
func TestDriversAreDeclaredWhole(t *testing.T) {
	all := add(nil, "speech.recognizers", drivers.Recognizers())
	all = add(all, "speech.synthesizers", drivers.Synthesizers())
	all = add(all, "brains", drivers.Brains())
	all = add(all, "brain_deep", drivers.Models())
	if len(all) < 18 {
		t.Fatalf("there are %d drivers", len(all))
	}
	seen := map[string]bool{}
	for _, d := range all {
		at := d.list + " " + d.kind
		if seen[at] || len(d.runs) == 0 {
			t.Errorf("%s is there twice, or nobody uses it", at)
		}
		seen[at] = true
		var keys []string
		for _, f := range d.fields {
			keys = append(keys, f.Key)
			if !strings.HasSuffix(f.Doc, ".") {
				t.Errorf("%s: %s is explained by %q", at, f.Key, f.Doc)
			}
		}
		for line := range strings.Lines(d.sample) {
			var entry map[string]any
			if err := yaml.Unmarshal([]byte(line), &entry); err != nil || entry["kind"] != d.kind {
				t.Errorf("%s: sample %q: %v", at, line, err)
			}
			for key := range entry {
				if key != "kind" && !slices.Contains(keys, key) {
					t.Errorf("%s: the sample has %s, and the driver has %v", at, key, keys)
				}
			}
		}
		if d.sample == "" {
			t.Errorf("%s has no sample", at)
		}
	}
}

// TestUnknownKind: the error for an unknown kind lists the known kinds.
func TestUnknownKind(t *testing.T) {
	for _, err := range []error{drivers.Recognizers().Check("ears", nil, drivers.Voice{}),
		func() error { _, err := drivers.Recognizers().New("ears", nil, drivers.Voice{}); return err }()} {
		if err == nil || err.Error() != `it must be one of assist, openai, sphinx, wyoming, not "ears"` {
			t.Error(err)
		}
	}
}

// TestTimeoutOfABrain: a brain's timeout is that of its options, or else that of the setup.
func TestTimeoutOfABrain(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	quiet := slog.New(slog.DiscardHandler)
	setup := drivers.Brain{BrainSetup: thinker.BrainSetup{Options: thinker.Options{Log: quiet}, Within: 60 * time.Millisecond}}
	for kind, options := range map[string]func(own time.Duration) any{
		"openai": func(own time.Duration) any {
			return &thinker.BrainKeys[openai.Options]{Model: openai.Options{URL: silent.URL, Model: "m", FirstWithin: own}}
		},
		"anthropic": func(own time.Duration) any {
			return &thinker.BrainKeys[anthropic.Options]{Model: anthropic.Options{URL: silent.URL, Model: "m", FirstWithin: own}}
		},
		"assist": func(own time.Duration) any {
			return &assist.Options{URL: silent.URL, Token: "t", REST: true, FirstWithin: own}
		},
	} {
		for own, want := range map[time.Duration]string{0: "60ms", 40 * time.Millisecond: "40ms"} {
			t.Run(kind+" "+want, func(t *testing.T) {
				t.Parallel()
				brain, err := drivers.Brains().New(kind, options(own), setup)
				must.Succeed(t, err)
				err = brain.Think(t.Context(), agent.Turn{Text: "Hello"}, func(agent.Reply) error { return nil })
				if err == nil || !strings.Contains(err.Error(), "within "+want) && !strings.Contains(err.Error(), "in "+want) {
					t.Error(err)
				}
				switch c := brain.(type) {
				case interface{ Close() error }:
					_ = c.Close()
				case interface{ Close() }:
					c.Close()
				}
			})
		}
	}
	brain, err := drivers.Brains().New("acp", &acp.Options{Command: []string{"x"}}, setup) // its timeout does not depend on the setup
	if err != nil || (&acp.Options{}).Patience() != 5*time.Minute || (&acp.Options{Silence: time.Minute}).Patience() != time.Minute {
		t.Errorf("%v, %v", brain, err)
	}
}

// TestPersonaFillsMissingOptions: the persona's values replace missing options of a brain.
func TestPersonaFillsMissingOptions(t *testing.T) {
	warm := 0.5
	persona := agent.Persona{Brain: agent.BrainOptions{Model: "hers", Temperature: &warm, MaxTokens: 90}}
	setup := drivers.Brain{BrainSetup: thinker.BrainSetup{Options: thinker.Options{Persona: persona}}}
	for own, want := range map[string]string{"": "hers at http://h/v1", "m": "m at http://h/v1"} {
		brain, err := drivers.Brains().New("openai", &thinker.BrainKeys[openai.Options]{Model: openai.Options{URL: "http://h/v1", Model: own}}, setup)
		must.Succeed(t, err)
		if got := brain.(interface{ Where() string }).Where(); got != want {
			t.Errorf("model %q: %s", own, got)
		}
	}
}
