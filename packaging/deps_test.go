package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"perch/must"
)

// TestDepsRefuseOldGo runs deps.sh on a machine with another Go, without the packages, and with an apt-get that
// records its calls.
func TestDepsRefuseOldGo(t *testing.T) {
	if _, err := os.ReadFile("deps.sh"); err != nil { // makes Go run the test again after deps.sh has changed
		t.Fatal(err)
	}
	text := must.Value(os.ReadFile("../go.mod"))(t)
	_, rest, _ := strings.Cut(string(text), "\ngo ")
	needed, _, _ := strings.Cut(rest, "\n")
	for _, c := range []struct {
		name, version, toolchain string
		refused                  string
	}{
		{"none", "", "", "there is no go on the PATH"},
		{"Debian 12's", "go version go1.19.8 linux/amd64", "", "is Go 1.19.8"},
		{"one that fetches no other", "go version go1.24.4 linux/amd64", "local", "is Go 1.24.4"},
		{"one that is told to be itself", "go version go1.24.4 linux/amd64", "go1.24.4", "is Go 1.24.4"},
		{"one that fetches another", "go version go1.24.4 linux/amd64", "auto", ""},
		{"the right one", "go version go" + needed + " linux/arm64", "local", ""},
		{"a newer one", "go version go1.100.1 linux/arm64", "local", ""},
		{"one of its makers'", "go version devel go1.99-abc Mon Jan 1 linux/amd64", "local", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			programs := t.TempDir()
			script := func(name, does string) {
				must.Succeed(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+does+"\n"), 0o755))
			}
			for _, name := range []string{"sh", "dirname", "uname", "sed", "grep", "head", "cut", "sort", "id", "mktemp", "rm", "env", "cat"} {
				path := must.Value(exec.LookPath(name))(t)
				must.Succeed(t, os.Symlink(path, filepath.Join(programs, name)))
			}
			if c.version != "" {
				script("go", `case $1 in version) echo "`+c.version+`" ;; env) echo "`+c.toolchain+`" ;; *) echo "go $*" >&2; exit 1 ;; esac`)
			}
			script("dpkg-query", "exit 1")
			script("apt-get", `echo "$*" >>`+programs+`/installed`)
			script("sudo", `exec "$@"`)
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "./deps.sh")
			cmd.Env = []string{"PATH=" + programs}
			out, err := cmd.CombinedOutput()
			installed, _ := os.ReadFile(filepath.Join(programs, "installed"))
			if c.refused == "" {
				if err != nil || !strings.Contains(string(installed), "libopus-dev") {
					t.Errorf("%v\n%s\ninstalled: %s", err, out, installed)
				}
				return
			}
			if err == nil || len(installed) > 0 {
				t.Errorf("it goes on: %v\n%s\ninstalled: %s", err, out, installed)
			}
			for _, want := range []string{"Go " + needed, "https://go.dev/dl", c.refused, "Nothing was installed."} {
				if !strings.Contains(string(out), want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
		})
	}
}
