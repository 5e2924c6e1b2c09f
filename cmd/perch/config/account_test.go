package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perch/command/commandtest"
	"perch/must"
)

func written(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perch.yaml")
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// stranger returns an account that owns no file of the test. groups are additional group IDs.
func stranger(groups ...uint32) Account { return Account{"other", 54321, append(groups, 54321)} }

// keptIn writes a file with a mode into a new directory with the mode dirMode, and returns the file's path.
func keptIn(t *testing.T, dirMode, mode fs.FileMode) string {
	t.Helper()
	dir := filepath.Join(commandtest.OpenFolder(t), "in side")
	path := filepath.Join(dir, "brain.key")
	for _, err := range []error{os.Mkdir(dir, 0o700), os.WriteFile(path, []byte("k"), 0o600), os.Chmod(path, mode), os.Chmod(dir, dirMode)} {
		must.Succeed(t, err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	return path
}

// TestReadabilityByModeAndOwner: checkReadable considers mode, owner and group of the file and of every directory above
// it, and its error contains the command that corrects them.
func TestReadabilityByModeAndOwner(t *testing.T) {
	group := uint32(os.Getegid())
	for name, c := range map[string]struct {
		who       Account
		dir, file fs.FileMode
		says      []string // parts of the error; empty if the account can read the file
	}{
		"anybody may": {stranger(), 0o755, 0o644, nil},
		"as anybody makes a key": {stranger(), 0o755, 0o600, []string{"the user other cannot read", "mode 0600", "sudo chgrp other '",
			"' && sudo chmod g+r '"}},
		"its group may, and is not": {stranger(), 0o755, 0o640, []string{"mode 0640", "sudo chgrp other"}},
		"its group may, and is":     {stranger(group), 0o755, 0o640, nil},
		"its group alone may not":   {stranger(group), 0o755, 0o604, []string{"mode 0604"}},
		"a directory on the way":    {stranger(), 0o700, 0o644, []string{"may not enter", "in side", "mode 0700", "chmod g+x"}},
		"a directory of its group":  {stranger(group), 0o710, 0o644, nil},
		"its owner":                 {Account{"me", uint32(os.Geteuid()), nil}, 0o700, 0o600, nil},
		"root":                      {Account{"root", 0, nil}, 0o000, 0o000, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := keptIn(t, c.dir, c.file)
			link := filepath.Join(commandtest.OpenFolder(t), "link")
			must.Succeed(t, os.Symlink(path, link))
			for _, named := range []string{path, link} {
				err := c.who.checkReadable(named)
				if (err == nil) != (c.says == nil) {
					t.Fatalf("%s: %v", named, err)
				}
				for _, word := range c.says {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("it says %q, not %q", err, word)
					}
				}
			}
		})
	}
	for _, path := range []string{"/home/ann/brain.key", "/root/x", "/tmp/x"} {
		if err := (Account{"perch", 54321, nil}).checkReadable(path); err == nil ||
			!strings.Contains(err.Error(), "sudo install -m 640 -g perch "+path+" /etc/perch/") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := stranger().checkReadable("/nowhere/at/all"); err != nil {
		t.Errorf("of what is not there others tell: %v", err)
	}
}

// TestReadabilityForTheServicesUser: Load with Source.Service reports the files that the
// service's user cannot read, with line and key.
func TestReadabilityForTheServicesUser(t *testing.T) {
	key, open := keptIn(t, 0o755, 0o600), keptIn(t, 0o755, 0o644)
	text := "brains:\n  - {kind: openai, url: \"http://h:1/v1\", model: m, key_file: \"" + key +
		"\"}\n  - {kind: none}\nmqtt: {broker: none, password_file: \"" + open + "\"}\n"
	path := written(t, text)
	commandtest.OpenFolder(t)
	for _, err := range []error{os.Chmod(filepath.Dir(path), 0o755), os.Chmod(path, 0o644)} {
		must.Succeed(t, err)
	}
	who := stranger()
	_, err := (Source{File: path, Service: &who}).Load()
	if err == nil || strings.Count(err.Error(), "\n") != 0 {
		t.Fatalf("it is judged %v", err)
	}
	for _, word := range []string{path + ":2: brains.0.key_file: ", "the user other cannot read " + key, "chmod g+r",
		"or move it into /etc/perch/secrets"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	persona := written(t, "robots: {each: [{robot: a0b1c2d3e4f5, persona: \""+key+"\"}]}\n")
	must.Succeed(t, os.Chmod(persona, 0o644))
	if _, err := (Source{File: persona, Service: &who}).Load(); err == nil || !strings.Contains(err.Error(), "robots.each.0.persona: the user other cannot read "+key) {
		t.Errorf("a persona that the service cannot read: %v", err)
	}
	must.Succeed(t, os.Chmod(path, 0o600))
	if _, err := (Source{File: path, Service: &who}).Load(); err == nil ||
		!strings.Contains(err.Error(), "the user other cannot read "+path) {
		t.Errorf("a configuration that the service cannot read: %v", err)
	}
	me := currentAccount()
	if _, err := (Source{File: path, Service: &me}).Load(); err != nil {
		t.Errorf("its owner can: %v", err)
	}
}

// TestUnreadableFiles: without Source.Service, a file that this process may not read is a fault that names the
// file, the user and the command. With Source.Service, only files that the service's user may not read are.
func TestUnreadableFiles(t *testing.T) {
	if os.Geteuid() == 0 {
		commandtest.RunAsNobody(t, "TestUnreadableFiles") // root reads everything
		return
	}
	key := keptIn(t, 0o755, 0o000)
	path := written(t, "brains: [{kind: openai, url: \"http://h:1/v1\", model: m, key_file: \""+key+"\"}]")
	_, err := (Source{File: path}).Load()
	for _, word := range []string{":1: brains.0.key_file: ", "the user " + currentAccount().Name + " cannot read", "brain.key", "chgrp"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not say %q", err, word)
		}
	}
	who := Account{"someone", 0, nil} // the user ID 0 may read everything
	if _, err := (Source{File: path, Service: &who}).Load(); err != nil {
		t.Errorf("for whom it is: %v", err)
	}
}

// TestDeniedInstalledFile checks that the error for an installed file advises to join the service's group only
// if the group may read the file.
func TestDeniedInstalledFile(t *testing.T) {
	service := stranger(uint32(os.Getegid()))
	for name, c := range map[string]struct {
		dir, file fs.FileMode
		joins     bool
	}{
		"readable by the group":  {0o755, 0o640, true},
		"readable by its owner":  {0o755, 0o600, false},
		"in a folder of secrets": {0o700, 0o640, false},
	} {
		path := keptIn(t, c.dir, c.file)
		err := stranger().deniedInstalled(path, service)
		if joins := strings.Contains(err.Error(), "join the group perch (sudo adduser other perch"); joins != c.joins ||
			!strings.Contains(err.Error(), "use sudo") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
