package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/command/commandtest"
	"perch/must"
)

// pagesOf returns the text of the files that match the patterns; key: path in the repository.
func pagesOf(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range patterns {
		names, err := filepath.Glob("../../" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			text := must.Value(os.ReadFile(name))(t)
			all[strings.TrimPrefix(name, "../../")] = string(text)
		}
	}
	return all
}

// TestConfigurationsOfPages checks that check-config finds no fault in the configurations in docs/how-to. The test
// creates the files that they name.
func TestConfigurationsOfPages(t *testing.T) {
	fenced := regexp.MustCompile("(?ms)^( *)```(yaml|markdown)\n(.*?)^ *```$")
	named := regexp.MustCompile(`/etc/perch/[a-z/.-]+`)
	checked := 0
	for name, page := range pagesOf(t, "docs/how-to/*.md") {
		etc := t.TempDir()
		files := map[string]string{}
		var configurations []string
		for _, block := range fenced.FindAllStringSubmatch(page, -1) {
			text := regexp.MustCompile("(?m)^"+block[1]).ReplaceAllString(block[3], "")
			if block[2] == "markdown" {
				files["/etc/perch/persona.md"] = text
				continue
			}
			if !strings.Contains(text, "action: ") { // an automation of Home Assistant has this key
				configurations = append(configurations, text)
			}
		}
		for _, text := range configurations {
			for _, path := range named.FindAllString(text, -1) {
				file := filepath.Join(etc, filepath.Base(path))
				content := files[path]
				if content == "" {
					content = "secret"
				}
				must.Succeed(t, os.WriteFile(file, []byte(content), 0o600))
				text = strings.ReplaceAll(text, path, file)
			}
			checked++
			if code, out, said := commandLine(t, "check-config", appliancetest.WriteConfig(t, text)); code != exitDone {
				t.Errorf("%s: %s%s\n%s", name, out, said, text)
			}
		}
	}
	if checked < 4 {
		t.Errorf("only %d configurations were found", checked)
	}
}

// TestCommandsOfPages checks that perch has the commands and options that the pages show.
func TestCommandsOfPages(t *testing.T) {
	commandtest.CheckPages(t, commands(), "../..", 15)
}
