package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"perch/must"
)

func TestUpstreamHasNoPassword(t *testing.T) {
	script := must.Value(filepath.Abs("upstream.sh"))(t)
	if _, err := os.ReadFile(script); err != nil { // makes Go run the test again after upstream.sh has changed
		t.Fatal(err)
	}
	repository := t.TempDir()
	run := func(env []string, name string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = repository
		c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + repository, "GIT_AUTHOR_NAME=Ann Author", "GIT_AUTHOR_EMAIL=ann@example.org",
			"GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.org"}, env...)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s %v: %v", name, args, err)
		}
		return string(out)
	}
	run(nil, "git", "init", "-q")
	run(nil, "git", "commit", "-q", "--allow-empty", "-m", "x")
	author := "Maintainer: Ann Author <ann@example.org>\n"
	if got := run(nil, script); got != author {
		t.Errorf("without an origin: %q", got)
	}
	if got := run([]string{"DEBFULLNAME=Bob", "DEBEMAIL=bob@example.org", "PERCH_HOMEPAGE=https://perch.example/"},
		script); got != "Maintainer: Bob <bob@example.org>\nHomepage: https://perch.example/\n" {
		t.Errorf("named: %q", got)
	}
	if got := run([]string{"PERCH_HOMEPAGE=https://perch.example"}, script); got != author+"Homepage: https://perch.example\n" {
		t.Errorf("named without a path: %q", got)
	}
	run(nil, "git", "remote", "add", "origin", "x")
	for origin, want := range map[string]string{
		"https://git.example.org/perch/perch.git":            "https://git.example.org/perch/perch",
		"https://ann:secret@git.example.org/perch/perch.git": "https://git.example.org/perch/perch",
		"https://secret@token@git.example.org/perch/perch":   "https://git.example.org/perch/perch",
		"git@git.example.org:perch/perch.git":                "https://git.example.org/perch/perch",
		"ssh://git@git.example.org:2222/perch/perch.git":     "https://git.example.org/perch/perch",
		"/srv/git/perch.git":                                 "",
		"../perch":                                           "",
		"file:///srv/git/perch.git":                          "",
		"ssh://backup/perch.git":                             "",
	} {
		run(nil, "git", "remote", "set-url", "origin", origin)
		got := strings.TrimSpace(strings.TrimPrefix(run(nil, script), author))
		if want != "" {
			want = "Homepage: " + want
		}
		if got != want {
			t.Errorf("%s: %q, want %q", origin, got, want)
		}
	}
}
