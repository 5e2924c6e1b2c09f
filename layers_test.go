// Package perch_test checks which packages of the module import which other packages and libraries.
// It parses the source files instead of running the go command: go test does not know which files a
// command has read, and would reuse a cached result after they have changed.
package perch_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// floors lists the packages of the module in layers, the lowest layer first; spaces separate the packages of
// a layer. A package may import only packages of lower layers. A name that ends in /* matches all folders
// below, except those that are listed by their own names.
var floors = []string{
	"limit plain driver secret health idlememory",
	"child language socket device device/xiaozhi voice command remote ota/espimage store/salvage packaging/* gateway/httpserver gateway/mdns gateway/robot/control",
	"event store agent/program remote/* voice/media voice/program gateway/robot/udp gateway/broker packaging/image/firstboot packaging/image/portal",
	"agent agent/modeltext agent/refusal cmd/perch-speech/models ota perception voice/* store/* gateway/robot/tools gateway/robot/transport",
	"agent/thinker agent/notice agent/mood agent/manifest agent/passport agent/action",
	"agent/* gateway/avatar/feed gateway/robot/dialogue gateway/robot/notify gateway/robot/vision",
	"gateway/avatar gateway/homeassistant/topic gateway/robot/transcript gateway/robot/playback",
	"gateway/homeassistant/connection gateway/homeassistant/discovery",
	"gateway/homeassistant/state",
	"gateway/homeassistant/command",
	"gateway/*",
	"cmd/perch/drivers cmd/perch-speech/manager",
	"cmd/perch/authority cmd/perch/config cmd/perch/systemd cmd/perch/logtail cmd/perch/machine cmd/perch/parts",
	"cmd/perch/drivers/manual cmd/perch/datadir cmd/perch/listener cmd/perch/characters cmd/perch/hassapp cmd/perch/settings cmd/perch/robots",
	"cmd/perch/access cmd/perch/network cmd/perch/skills cmd/perch/engines",
	"cmd/perch/agents cmd/perch/viewers",
	"cmd/perch/appliance",
	"cmd/perch/doctor",
	"cmd/perch cmd/perch-speech",
	"firmware-tools/nvs firmware-tools/simrobot firmware-tools/*",
	"firmware-tools",
	".",
}

// owners maps the import path of a library, which includes all paths below it, to the only packages that may
// import it. A key that begins with perch/ restricts the importers of a package of this module in the same way.
var owners = map[string]string{
	"C": "voice voice/*", "go.etcd.io/bbolt": "store store/*", "github.com/gorilla/websocket": "socket",
	"github.com/gin-gonic/gin": "gateway/* cmd/perch/access cmd/perch/listener ota", "github.com/hraban/opus": "voice", "github.com/maxhawkins/go-webrtcvad": "voice",
	"github.com/eclipse/paho.mqtt.golang": "gateway/homeassistant/connection gateway/robot/control firmware-tools/simrobot",
	"github.com/mochi-mqtt/server/v2":     "gateway/broker", "github.com/prometheus": "gateway/owner/admin", "rsc.io/qr": "gateway/owner/web",
	"github.com/grandcat/zeroconf": "gateway/mdns", "github.com/miekg/dns": "gateway/mdns",
	"golang.org/x/net": "gateway/mdns", "golang.org/x/sync": "gateway/owner/admin", "golang.org/x/text": "language", "golang.org/x/time": "gateway/* perception packaging/*", "github.com/pelletier/go-toml/v2": "packaging/*", "go.yaml.in/yaml/v3": "cmd/perch/* agent agent/* language",
	"github.com/modelcontextprotocol/go-sdk": "agent/mcp gateway/avatar/vccp", "github.com/anthropics/anthropic-sdk-go": "agent/anthropic",
	"github.com/coreos/go-systemd/v22": "cmd/perch/systemd", "github.com/spf13/cobra": "command cmd/perch cmd/perch-speech firmware-tools", "github.com/spf13/pflag": "command",
	"github.com/k2-fsa/sherpa-onnx-go-linux": "voice/sherpa", "perch/voice/sherpa": "cmd/perch-speech",
	"github.com/yalue/onnxruntime_go": "voice/sherpa", "gonum.org/v1/gonum": "voice/sherpa",
	"github.com/pion/opus": "voice/sounds firmware-tools/simrobot", "github.com/pion/rtp": "gateway/robot/notify", "github.com/pion/webrtc/v4": "gateway/robot/notify",
}

func TestLayers(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != "." && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "node_modules" || d.Name()[0] == '.') {
			return filepath.SkipDir
		}
		dir := path.Dir(filepath.ToSlash(name))
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(dir, "test") {
			return err // tests, and packages that only tests import, may use anything
		}
		seen++
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if why := forbidden(dir, imported); why != "" {
				t.Errorf("%s imports %s: %s", name, imported, why)
			}
		}
		return nil
	})
	if err != nil || seen < 500 {
		t.Errorf("%d files: %v", seen, err)
	}
	for dir, imported := range map[string]string{"voice": "perch/store", "gateway/robot": "perch/gateway/owner/admin", "agent": "go.etcd.io/bbolt",
		"cmd/perch/appliance": "perch/firmware-tools/simrobot", "cmd/perch": "perch/voice/sherpa", "store": "example.com/unknown", "elsewhere": "perch/device"} {
		if forbidden(dir, imported) == "" {
			t.Errorf("%s may import %s", dir, imported)
		}
	}
}

// forbidden returns why the package in the folder dir must not import the package imported, or "" if it may.
func forbidden(dir, imported string) string {
	if inner, ours := strings.CutPrefix(imported, "perch/"); ours {
		from, to := floor(dir), floor(inner)
		switch owning, owned := owners[imported]; {
		case owned && !matches(owning, dir):
			return "the package does not own this one"
		case from < 0 || to < 0:
			return "a package that is on no floor"
		case from > to && !(strings.HasPrefix(inner, "firmware-tools") && !strings.HasPrefix(dir, "firmware-tools")):
			return ""
		}
		return "it is not on a lower floor"
	}
	if !strings.Contains(imported, ".") && imported != "C" {
		return "" // the standard library
	}
	for library, owning := range owners {
		if (imported == library || strings.HasPrefix(imported, library+"/")) && matches(owning, dir) {
			return ""
		}
	}
	return "the package does not own this library"
}

// floor returns the index of a package's layer in floors, or -1 if no layer has the package. An exact name takes
// precedence over a pattern.
func floor(dir string) int {
	exact := slices.IndexFunc(floors, func(f string) bool { return slices.Contains(strings.Fields(f), dir) })
	if exact >= 0 {
		return exact
	}
	return slices.IndexFunc(floors, func(f string) bool { return matches(f, dir) })
}

func matches(names, dir string) bool {
	return slices.ContainsFunc(strings.Fields(names), func(n string) bool {
		below, all := strings.CutSuffix(n, "*")
		return n == dir || all && strings.HasPrefix(dir, below)
	})
}
