// Package perch_test holds the rules of the whole repository: which package may
// import which, and which one package owns each library. It parses the files,
// because a test that asks the go command is served from the test cache and
// stays green.
package perch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows are the imports among our own packages that the design allows. A
// name that ends in /* stands for every folder below.
var arrows = map[string][]string{
	"device":                {"language"},
	"language":              {}, // all that is said and shown
	"device/xiaozhi":        {},
	"ota/espimage":          {},
	"voice":                 {},
	"store":                 {"language"},
	"store/storetest":       {},
	"store/archive":         {"store", "ota/espimage"},
	"store/archive/*":       {"store"},
	"socket":                {},
	"gateway/door":          {"language"},
	"gateway/door/doortest": {},
	"child":                 {},
	"command":               {},
	"remote":                {"socket"},
	"remote/*":              {"language", "remote", "socket"},
	"event":                 {"device"},
	"agent":                 {"device", "event", "language"},
	"ota":                   {"device", "event", "language", "ota/espimage"},
	"perception":            {"device", "event", "language"},

	"agent/notice":  {"agent", "device", "event"},
	"agent/thinker": {"agent", "device", "event"},
	"agent/*":       {"agent", "agent/thinker", "device", "event", "language", "remote", "socket"}, // drivers
	"agent/assist":  {"agent", "agent/thinker", "device", "event", "language", "remote", "remote/hass", "socket"},
	"agent/acp":     {"agent", "agent/thinker", "agent/program", "device", "event", "language", "remote", "socket"},
	"agent/mcp":     {"agent", "agent/thinker", "agent/program", "device", "event", "language", "remote", "socket"},
	"agent/program": {"child"},
	// A character: what it feels, does, is told to be, knows how to do and has done.
	"agent/mood":     {"agent", "device", "event", "language"},
	"agent/action":   {"agent", "agent/mood", "device", "event"},
	"agent/feed":     {"agent", "agent/notice", "device", "event"},
	"agent/diary":    {"agent", "agent/action", "device", "event"},
	"agent/manifest": {"agent", "language"},
	"agent/passport": {"agent"},
	"agent/skill":    {"agent", "agent/thinker", "device", "event", "language", "remote"},
	"voice/*":        {"language", "voice", "remote", "socket"},

	// Those whose sound comes over HTTP read it alike.
	// What becomes of a program that speaks is said alike.
	"voice/espeak":     {"language", "voice", "voice/program"},
	"voice/openjtalk":  {"language", "voice", "voice/program"},
	"voice/program":    {"child", "voice"},
	"voice/openai":     {"language", "voice", "voice/media", "remote", "socket"},
	"voice/elevenlabs": {"language", "voice", "voice/media", "remote", "socket"},
	"voice/assist":     {"language", "voice", "voice/media", "remote", "remote/hass", "socket"},

	"gateway/*": {"agent", "agent/feed", "agent/notice", "agent/thinker", "device", "event", "perception", "voice", "socket", "gateway/door"},
	"gateway/robot": {"agent", "agent/notice", "agent/thinker", "device", "device/xiaozhi", "event", "language", "perception", "voice", "socket",
		"gateway/door", "gateway/robot/control", "gateway/robot/udp"},
	"gateway/robot/control": {},
	"gateway/robot/udp":     {"device/xiaozhi"},
	"gateway/web": {"language", "agent", "agent/mood", "agent/notice", "agent/thinker", "device", "event", "perception", "voice", "socket",
		"gateway/door"},
	"gateway/admin": {"agent", "agent/notice", "agent/thinker", "device", "event", "language", "ota", "perception", "voice", "socket",
		"gateway/door"},
	"gateway/wyoming": {"agent", "agent/notice", "agent/thinker", "device", "event", "perception", "voice", "voice/wyoming", "socket",
		"gateway/door"},
	"gateway/broker":    {"gateway/door"},
	"gateway/mdns":      {"language"},
	"gateway/avatar":    {"agent", "agent/feed", "socket", "gateway/door"},
	"gateway/aituber":   {"agent", "agent/feed", "agent/notice", "event", "socket", "gateway/avatar", "gateway/door"},
	"gateway/llmvtuber": {"agent", "agent/feed", "agent/notice", "event", "voice", "socket", "gateway/avatar", "gateway/door"},
	"gateway/relay":     {"agent", "agent/feed", "agent/notice", "device", "event", "language", "voice", "remote", "socket", "gateway/door"},
	"gateway/openclaw":  {"agent", "agent/feed", "agent/notice", "device", "event", "socket", "gateway/door"},
	"gateway/character": {"agent", "agent/action", "agent/diary", "agent/manifest", "agent/mood", "agent/passport", "device", "event",
		"gateway/door"},
	// Of remote the scrubbing of keys.
	"gateway/hooks": {"agent", "agent/notice", "device", "event", "language", "perception", "remote", "voice", "socket", "gateway/door"},

	// Its tests run the broker beside them; the appliance runs it as a child.
	"gateway/homeassistant": {"agent", "agent/notice", "agent/thinker", "device", "event", "language", "perception", "voice", "socket",
		"gateway/door", "gateway/broker"},

	"command/commandtest": {"command"},
	"firmware-tools":      {"command", "firmware-tools/*", "device", "device/xiaozhi", "ota/espimage", "voice", "voice/*", "socket", "gateway/mdns"},
	"firmware-tools/*":    {"firmware-tools/*", "device", "device/xiaozhi", "ota/espimage", "voice", "voice/*", "socket", "gateway/mdns"},
	"cmd/*": {"child", "command", "agent", "agent/*", "device", "device/*", "event", "gateway/*", "ota", "ota/*", "perception", "remote",
		"remote/*", "socket", "store", "store/*", "voice", "voice/*", "cmd/perch/config", "cmd/perch/appliance", "cmd/perch/doctor"},
	// The parts of the program: the configuration knows no door, the appliance
	// nothing of the doctor and the commands.
	// The sample has what is said of the configuration's keys.
	// As an app of Home Assistant it has other defaults.
	"cmd/perch/config": {"agent", "agent/manifest", "agent/reflex", "agent/skill", "device", "language", "packaging", "perception",
		"remote/supervisor", "voice"},
	"cmd/perch/appliance": {"cmd/perch/config", "agent", "agent/*", "device", "device/*", "event", "gateway/*", "language", "ota", "ota/*",
		"perception",
		"remote", "remote/*", "socket", "store", "store/*", "voice", "voice/*"},
	"cmd/perch/doctor": {"child", "cmd/perch/appliance", "cmd/perch/config", "agent", "agent/*", "device", "language", "remote", "gateway/*", "store",
		"store/*", "voice"},
	"packaging/image/board":     {},
	"packaging/image/firstboot": {"packaging/image/board"},             // a program of the card's own
	"packaging/image/portal":    {"language", "packaging/image/board"}, // another
	"packaging":                 {"store"},                             // the soak has its appliance installed hours ago
	// Programs that pack what is given out: they know nothing of what is in it.
	"packaging/container":        {},
	"packaging/container/layout": {},
	"packaging/release":          {},
	"packaging/spdx":             {},
	".":                          {},
}

// owners are the only packages that may import a library. A rule for a prefix
// holds for everything below it.
var owners = map[string][]string{
	"go.etcd.io/bbolt":             {"store"},
	"github.com/gorilla/websocket": {"socket", "packaging"},
	// Its packets alone are robots' MQTT, on both sides.
	"github.com/eclipse/paho.mqtt.golang":    {"gateway/homeassistant", "gateway/robot", "gateway/robot/control", "firmware-tools/simrobot"},
	"github.com/mochi-mqtt/server/v2":        {"gateway/broker"},
	"github.com/grandcat/zeroconf":           {"gateway/mdns"},
	"github.com/pion/mdns/v2":                {"gateway/mdns"},
	"github.com/miekg/dns":                   {"gateway/mdns"},
	"golang.org/x/net":                       {"gateway/mdns"},
	"github.com/prometheus":                  {"gateway/admin"},
	"github.com/hraban/opus":                 {"voice"},
	"github.com/maxhawkins/go-webrtcvad":     {"voice"},
	"github.com/pion/opus":                   {"voice/sounds", "gateway/robot", "firmware-tools/simrobot"},
	"github.com/pion/rtp":                    {"gateway/robot"},
	"github.com/pion/webrtc/v4":              {"gateway/robot"},
	"github.com/pelletier/go-toml/v2":        {"packaging/image/firstboot"},
	"go.yaml.in/yaml/v3":                     {"cmd/perch", "cmd/perch/config", "cmd/perch/appliance", "agent", "agent/*", "language"},
	"golang.org/x/text":                      {"language"},
	"github.com/modelcontextprotocol/go-sdk": {"agent/mcp", "gateway/vccp"},
	"github.com/anthropics/anthropic-sdk-go": {"agent/anthropic"},
	"golang.org/x/time":                      {"gateway/door"},
	"rsc.io/qr":                              {"gateway/web"},
	"github.com/coreos/go-systemd/v22":       {"cmd/perch/appliance"},
	"go.bug.st/serial":                       {"firmware-tools/romloader"},
	"github.com/spf13/cobra":                 {"command", "command/commandtest", "cmd/perch", "firmware-tools"}, // both programs have commands
	"github.com/spf13/pflag":                 {"command"},
	"C":                                      {"voice", "voice/*"},
}

// forTests are the packages that any test may import.
var forTests = []string{"firmware-tools/simrobot", "command/commandtest", "store/storetest", "gateway/door/doortest", "cmd/perch/appliancetest",
	"store/archive/archivetest", "gateway/avatar/avatartest", "remote/supervisor/supervisortest"}

// testArrows are imports of a package's own tests: what happens is for others to publish,
// one transcript is of a turn that both relays and the doors of avatar programs show, and a
// diary is killed on its way to the disk.
var testArrows = map[string][]string{
	"agent/diary":    {"store"},
	"gateway/avatar": {"event"},
	"gateway/robot":  {"agent/reflex"}, // a talk in each language is answered
	"gateway/relay":  {"gateway/aituber", "gateway/llmvtuber", "gateway/openclaw"},
}

// testLibraries may be imported by any test and by nothing else.
var testLibraries = []string{"go.uber.org/goleak", "pgregory.net/rapid", "golang.org/x/tools/txtar", "github.com/google/jsonschema-go",
	"github.com/chromedp"}

const gin = "github.com/gin-gonic/gin"

func TestImports(t *testing.T) {
	seen := 0
	for _, name := range goFiles(t, "") {
		seen++
		for _, spec := range parsed(t, name, parser.ImportsOnly).Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := forbidden(filepath.ToSlash(name), imported); why != "" {
				t.Errorf("%s imports %s: %s", name, imported, why)
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d Go files were found; the test does not see the repository", seen)
	}
}

// startedOtherwise are the files whose programs do not get child.Environ, and why.
var startedOtherwise = map[string]string{
	"voice/espeak/speaker.go":                  "it passes on two variables, by their names",
	"cmd/perch/appliance/broker.go":            "it passes on one variable, by its name",
	"packaging/image/portal/networkmanager.go": "it passes on none",
	"packaging/image/board/board.go":           "it is no part of the appliance",
	"command/arguments.go":                     "it runs perch itself, for the completion of a shell",
	"firmware-tools/nmcli.go":                  "a person runs it in a shell",
	"firmware-tools/loudspeaker.go":            "a person runs it in a shell",
	"firmware-tools/simrobot/speak.go":         "a person runs it in a shell",
	"firmware-tools/bench/main.go":             "a developer runs it",
	"firmware-tools/bench/tests.go":            "a developer runs it",
}

// TestProgramsGetNoTokens: one function decides what every program that is started gets of
// the environment, which may hold our keys and the token of Home Assistant's Supervisor.
func TestProgramsGetNoTokens(t *testing.T) {
	seen := 0
	for _, name := range goFiles(t, "") {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(filepath.ToSlash(name)), "test") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		starts := strings.Count(string(text), "exec.Command(") + strings.Count(string(text), "exec.CommandContext(")
		if starts == 0 || startedOtherwise[filepath.ToSlash(name)] != "" {
			continue
		}
		seen++
		if strings.Count(string(text), ".Env = ") < starts || !strings.Contains(string(text), "child.Environ(") {
			t.Errorf("%s starts a program that inherits our whole environment; give it child.Environ(os.Environ())", name)
		}
	}
	if seen < 4 {
		t.Errorf("only %d files start programs; the test does not see them", seen)
	}
}

// goFiles are the project's Go files whose names end in a suffix.
func goFiles(t *testing.T, suffix string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && name != "." || name == "bin" || name == "data" ||
			name == "dist") {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(name, suffix+".go") {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func parsed(t *testing.T, name string, mode parser.Mode) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, mode)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// forbidden returns why a file may not import a package, or nothing.
func forbidden(file, imported string) string {
	dir := path.Dir(file)
	test := strings.HasSuffix(file, "_test.go") || strings.HasSuffix(dir, "test") // which only tests import
	if inner, ours := strings.CutPrefix(imported, "perch/"); ours {
		allowed, known := rules(dir)
		switch {
		case !known:
			return "this folder is not in the design"
		case inner == dir && test, matches(allowed, inner), test && slices.Contains(testArrows[dir], inner):
			return ""
		case test && inner == "agent/notice" && strings.HasPrefix(dir, "agent/"): // brains are tested with real timers
			return ""
		case test && (slices.Contains(forTests, inner) || dir == "." && !strings.HasPrefix(inner, "cmd/")):
			return ""
		}
		return "the design has no such arrow"
	}
	if !strings.Contains(strings.Split(imported, "/")[0], ".") && imported != "C" {
		return "" // the standard library
	}
	if imported == gin || strings.HasPrefix(imported, gin+"/") {
		if path.Base(file) == "routes.go" || dir == "cmd/perch/appliance" || test {
			return ""
		}
		return "gin belongs in routes.go"
	}
	for _, library := range testLibraries {
		if (imported == library || strings.HasPrefix(imported, library+"/")) && test {
			return ""
		}
	}
	for library, owning := range owners {
		if imported == library || strings.HasPrefix(imported, library+"/") {
			if matches(owning, dir) {
				return ""
			}
			return "it is owned by " + strings.Join(owning, ", ")
		}
	}
	return "no package owns this library"
}

func rules(dir string) (allowed []string, known bool) {
	if allowed, known = arrows[dir]; known {
		return allowed, true
	}
	for name := path.Dir(dir); name != "."; name = path.Dir(name) {
		if allowed, known = arrows[name+"/*"]; known {
			return allowed, true
		}
	}
	return nil, false
}

func matches(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, all := strings.CutSuffix(p, "/*")
		return p == dir || all && strings.HasPrefix(dir, below+"/")
	})
}

// TestTheTestSeesWrongArrows keeps TestImports able to fail.
func TestTheTestSeesWrongArrows(t *testing.T) {
	for file, imported := range map[string]string{
		"device/robot.go":              "perch/event",
		"voice/opus.go":                "perch/store",
		"gateway/robot/server.go":      "perch/gateway/admin",
		"gateway/admin/admin.go":       "perch/device/xiaozhi",
		"agent/mind.go":                "go.etcd.io/bbolt",
		"gateway/robot/session.go":     gin,
		"store/store.go":               "go.uber.org/goleak",
		"gateway/robot/serve.go":       "perch/firmware-tools/simrobot",
		"agent/turn.go":                "perch/cmd/perch",
		"agent/state.go":               "perch/agent/thinker",
		"agent/thinker/thinker.go":     "perch/agent/notice",
		"store/archive/archive.go":     "perch/gateway/door",
		"cmd/perch/config/check.go":    "perch/gateway/homeassistant",
		"cmd/perch/appliance/run.go":   "perch/cmd/perch/doctor",
		"cmd/perch/serve.go":           "perch/cmd/perch/appliancetest",
		"elsewhere/x.go":               "perch/device",
		"device/id.go":                 "example.com/unknown",
		"gateway/robot/socket_test.go": "github.com/gorilla/websocket",
		"agent/memory.go":              "perch/store/storetest",
		"gateway/relay/relay.go":       "perch/gateway/openclaw",
		"gateway/openclaw/x_test.go":   "perch/gateway/relay",
	} {
		if forbidden(file, imported) == "" {
			t.Errorf("%s may import %s", file, imported)
		}
	}
}

// TestManners holds rules that no linter knows: one package comment per package,
// no init, at most 600 lines in a file.
func TestManners(t *testing.T) {
	documented := map[string]int{}
	for _, name := range goFiles(t, "") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f := parsed(t, name, parser.ParseComments)
		dir := filepath.Dir(name)
		documented[dir] += 0
		if f.Doc != nil {
			documented[dir]++
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == "init" && fn.Recv == nil {
				t.Errorf("%s has an init function", name)
			}
		}
		text, err := os.ReadFile(name)
		if lines := strings.Count(string(text), "\n"); err != nil || lines > 600 {
			t.Errorf("%s has %d lines (%v); does it hold one idea?", name, lines, err)
		}
	}
	for dir, n := range documented {
		if n != 1 {
			t.Errorf("package %s has %d package comments, not 1", dir, n)
		}
	}
}

// TestWhatTheDocsNameExists: tests and transcripts that pages name exist, and
// SECURITY.md is short enough to be read.
func TestWhatTheDocsNameExists(t *testing.T) {
	tests := map[string]bool{}
	for _, name := range goFiles(t, "_test") {
		for _, decl := range parsed(t, name, parser.SkipObjectResolution).Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				tests[f.Name.Name] = true
			}
		}
	}
	for page, least := range map[string]int{"docs/firmware.md": 60, "CONTRIBUTING.md": 0, "SECURITY.md": 20} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); page == "SECURITY.md" && lines > 180 {
			t.Errorf("%s has %d lines", page, lines)
		}
		named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+|[a-z-]+\\.txtar)`").FindAllStringSubmatch(string(text), -1)
		if len(named) < least {
			t.Errorf("%s names only %d tests", page, len(named))
		}
		for _, n := range named {
			_, talk := os.Stat(filepath.Join("gateway/robot/testdata", n[1]))
			_, checkIn := os.Stat(filepath.Join("ota/testdata", n[1]))
			if !tests[n[1]] && (talk != nil && checkIn != nil || filepath.Ext(n[1]) != ".txtar") {
				t.Errorf("%s names %s, which does not exist", page, n[1])
			}
		}
	}
}
