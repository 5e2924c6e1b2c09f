package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"perch/cmd/perch/drivers"
	"perch/driver"
)

// EngineKind describes a kind of engine, so that a form can offer it for a list in the configuration.
type EngineKind struct {
	Kind    string         `json:"kind"`
	Summary string         `json:"summary"`
	About   string         `json:"about"`          // the key of Summary in language/TAG/keys.json
	Cost    string         `json:"cost,omitempty"` // CostFree or CostBilled; empty if it depends on the engine's address
	Options []EngineOption `json:"options"`
}

// EngineOption is an option of a kind of engine.
type EngineOption struct {
	Key      string   `json:"key"`
	Type     string   `json:"type"` // as Key.Type
	Choices  []string `json:"choices,omitempty"`
	Sections bool     `json:"sections,omitempty"` // as Key.Sections
	Doc      string   `json:"doc"`
	About    string   `json:"about"` // the key of Doc in language/TAG/keys.json
}

// What an engine costs.
const (
	CostFree   = "free"   // it runs on this machine
	CostBilled = "billed" // its provider may bill each use
)

// EngineKinds returns the kinds of engines by the key of the list that may contain them.
func EngineKinds() map[string][]EngineKind {
	return map[string][]EngineKind{
		"speech.recognizers":  engineKinds("speech.recognizers", drivers.Recognizers()),
		"speech.synthesizers": engineKinds("speech.synthesizers", drivers.Synthesizers()),
		"brains":              engineKinds("brains", drivers.Brains()),
		"brain_deep":          engineKinds("brains", drivers.Models()),
	}
}

// engineKinds describes the kinds of a list. about is the list whose translations are used.
func engineKinds[S, E any](about string, list driver.List[S, E]) (kinds []EngineKind) {
	for _, d := range list {
		k := EngineKind{Kind: d.Kind, Summary: d.Summary, About: about + "." + d.Kind, Cost: costOf(d.Runs, d.Billed), Options: []EngineOption{}}
		for _, f := range list.Fields(d.Kind) {
			o := EngineOption{Key: f.Key, Type: typeOf(f.Value.Type()), Choices: f.Choices, Sections: hasSections(f.Value.Type()), Doc: f.Doc,
				About: k.About + "." + f.Key}
			switch {
			case isSecret([]string{f.Key}):
				o.Type = "secret"
			case len(o.Choices) > 0:
				o.Type = "choice"
			}
			k.Options = append(k.Options, o)
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// costOf returns the cost of a kind of engine. runs is Driver.Runs; it contains "nothing" if the engine needs
// no other program.
func costOf(runs []string, billed bool) string {
	switch {
	case billed:
		return CostBilled
	case slices.Contains(runs, "nothing"):
		return CostFree
	}
	return ""
}

// Cost returns CostBilled if the engine's url is an address on the internet. Otherwise it returns
// EngineKind.Cost of the engine's kind.
func (e Engine) Cost() string {
	if isPublic(driver.Value[string](e.Options, "url")) {
		return CostBilled
	}
	for _, kinds := range EngineKinds() {
		for _, k := range kinds {
			if k.Kind == e.Kind {
				return k.Cost
			}
		}
	}
	return ""
}

// isPublic reports whether the URL of a server is on the internet, and not in a local network. It returns
// false for an invalid URL.
func isPublic(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsGlobalUnicast() && !ip.IsPrivate()
	}
	return strings.Contains(host, ".") && !slices.ContainsFunc([]string{".local", ".lan", ".home.arpa", ".internal"},
		func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}
