package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pagesOf are the pages that match, by their names.
func pagesOf(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range patterns {
		names, err := filepath.Glob("../../" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[strings.TrimPrefix(name, "../../")] = string(text)
		}
	}
	return all
}

// TestConfigurationsOfPages: check-config finds no fault in what the pages by
// task say to put into the configuration. The files that they name are there.
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
			configurations = append(configurations, text)
		}
		for _, text := range configurations {
			for _, path := range named.FindAllString(text, -1) {
				file := filepath.Join(etc, filepath.Base(path))
				content := files[path]
				if content == "" {
					content = "secret"
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				text = strings.ReplaceAll(text, path, file)
			}
			checked++
			var said bytes.Buffer
			if code := run(t.Context(), []string{"check-config", written(t, text)}, &said, &said); code != 0 {
				t.Errorf("%s: %s\n%s", name, &said, text)
			}
		}
	}
	if checked < 4 {
		t.Errorf("only %d configurations were found", checked)
	}
}

// TestCommandsOfPages: every command of perch that a page shows is one, with
// options that it has.
func TestCommandsOfPages(t *testing.T) {
	commands, err := shellCommands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?m)^ {4,}(?:sudo )?(?:-u perch )?(?:bin/)?perch ((?:robot )?[a-z-]+)(.*)$`)
	seen := 0
	for name, page := range pagesOf(t, "*.md", "docs/*.md", "docs/how-to/*.md") {
		for _, line := range shown.FindAllStringSubmatch(page, -1) {
			at := slices.IndexFunc(commands, func(c shellCommand) bool { return c.name == line[1] || "robot "+c.name == line[1] })
			if line[1] == "version" || line[1] == "help" {
				continue
			}
			if at < 0 {
				t.Errorf("%s: there is no perch %s", name, line[1])
				continue
			}
			seen++
			words, _, _ := strings.Cut(line[2], " #")
			for _, word := range strings.Fields(words) {
				option, _, _ := strings.Cut(word, "=")
				if strings.HasPrefix(option, "--") && !slices.ContainsFunc(commands[at].options,
					func(o shellOption) bool { return o.name == option }) {
					t.Errorf("%s: perch %s has no %s", name, line[1], option)
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d commands were found", seen)
	}
}
