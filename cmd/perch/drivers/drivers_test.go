package drivers_test

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"perch/cmd/perch/drivers"
	"perch/driver"
)

// declared is what a driver tells of itself.
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

// TestDriversAreDeclaredWhole: every driver says who uses it, explains its keys, and its sample
// entries have no others.
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

// TestAKindThatIsNone: the kinds are named.
func TestAKindThatIsNone(t *testing.T) {
	for _, err := range []error{drivers.Recognizers().Check("ears", nil, drivers.Voice{}),
		func() error { _, err := drivers.Recognizers().New("ears", nil, drivers.Voice{}); return err }()} {
		if err == nil || err.Error() != `it is one of assist, openai, sphinx, wyoming, not "ears"` {
			t.Error(err)
		}
	}
}
