package child_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// startedOtherwise maps the files that start programs without child.Environ to the reason.
var startedOtherwise = map[string]string{
	"voice/espeak/speaker.go":                  "it passes on two variables, by their names",
	"gateway/broker/process.go":                "it passes on one variable, by its name",
	"packaging/image/portal/networkmanager.go": "it passes on none",
	"packaging/image/board/board.go":           "it is no part of the appliance",
	"packaging/container/layout/main.go":       "it is no part of the appliance",
	"command/arguments.go":                     "it runs perch itself, for the completion of a shell",
	"cmd/perch-speech/supervisor.go":           "it runs perch-speech itself",
	"firmware-tools/nmcli.go":                  "a person runs it in a shell",
	"firmware-tools/esptool.go":                "a person runs it in a shell",
	"firmware-tools/loudspeaker.go":            "a person runs it in a shell",
	"firmware-tools/simrobot/speak.go":         "a person runs it in a shell",
	"firmware-tools/bench/main.go":             "a developer runs it",
	"firmware-tools/bench/tests.go":            "a developer runs it",
}

// TestProgramsGetNoTokens checks that each file that starts a program passes it child.Environ, because
// the environment of this process may hold Perch's keys and the token of Home Assistant's Supervisor.
// Tests and the files in startedOtherwise are exempt.
func TestProgramsGetNoTokens(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != ".." && (d.Name()[0] == '.' || d.Name() == "node_modules" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		file, _ := filepath.Rel("..", name)
		if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(filepath.Dir(name), "test") ||
			startedOtherwise[filepath.ToSlash(file)] != "" {
			return err
		}
		text, err := os.ReadFile(name)
		starts := strings.Count(string(text), "exec.Command(") + strings.Count(string(text), "exec.CommandContext(")
		if err != nil || starts == 0 {
			return err
		}
		seen++
		if strings.Count(string(text), ".Env = ") < starts || !strings.Contains(string(text), "child.Environ(") {
			t.Errorf("%s starts a program that inherits our whole environment; give it child.Environ(os.Environ())", file)
		}
		return nil
	})
	if err != nil || seen < 4 {
		t.Errorf("%d files start programs: %v", seen, err)
	}
}
