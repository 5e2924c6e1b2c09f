// Package release_test makes an apt repository of small packages, and installs and upgrades packages from it. It
// also checks what refuses a release.
package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"perch/must"
)

// at is the time of the release, in seconds since 1970.
const at = "1700000000"

func command(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := command(dir, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.Succeed(t, os.WriteFile(file, []byte(text), 0o644))
}

func read(t *testing.T, file string) string {
	t.Helper()
	text := must.Value(os.ReadFile(file))(t)
	return string(text)
}

// openpgp makes a folder of gpg with a key that is older than the release, and returns the environment that uses
// the folder.
func openpgp(t *testing.T, name string) []string {
	t.Helper()
	for _, program := range []string{"gpg", "apt-ftparchive", "dpkg-deb", "apt-get"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: packaging/deps.sh release installs it", program)
		}
	}
	home := must.Value(os.MkdirTemp("/tmp", "perch-gpg-"))(t) // a short path, because the socket of gpg's agent is in the folder
	env := []string{"GNUPGHOME=" + home, "SOURCE_DATE_EPOCH=" + at}
	t.Cleanup(func() {
		_, _ = command(".", env, "gpgconf", "--kill", "all")
		_ = os.RemoveAll(home)
	})
	output(t, ".", env, "gpg", "--batch", "--quiet", "--passphrase", "", "--faked-system-time", "1600000000!", "--quick-generate-key", name, "ed25519",
		"sign", "never")
	return env
}

// small returns a Debian package whose only file contains its version. A package for all architectures is perch-voice.
func small(t *testing.T, version, arch string) string {
	t.Helper()
	dir, name := t.TempDir(), "perch"
	if arch == "all" {
		name = "perch-voice"
	}
	write(t, dir+"/root/DEBIAN/control", "Package: "+name+"\nVersion: "+version+"\nArchitecture: "+arch+
		"\nMaintainer: Nobody <nobody@perch.example>\nDescription: a small one\n")
	write(t, dir+"/root/usr/share/"+name+"/version", version+"\n")
	file := dir + "/" + name + "_" + version + "_" + arch + ".deb"
	output(t, dir, []string{"SOURCE_DATE_EPOCH=" + at}, "dpkg-deb", "--root-owner-group", "-Zgzip", "--build", dir+"/root", file)
	return file
}

// client is an apt with a separate configuration. It knows one repository and installs into a folder.
type client struct {
	t   *testing.T
	dir string
}

func newClient(t *testing.T, repository, keyring string) client {
	c := client{t, t.TempDir()}
	for _, dir := range []string{"etc/apt/preferences.d", "etc/apt/apt.conf.d", "etc/apt/trusted.gpg.d", "var/lib/apt/lists/partial",
		"var/cache/apt/archives/partial", "var/log/apt", "root/var/lib/dpkg/updates", "root/var/lib/dpkg/info"} {
		must.Succeed(t, os.MkdirAll(filepath.Join(c.dir, dir), 0o755))
	}
	write(t, c.dir+"/root/var/lib/dpkg/status", "")
	write(t, c.dir+"/etc/apt/sources.list.d/perch.sources",
		"Types: deb\nURIs: file:"+repository+"\nSuites: stable\nComponents: main\nSigned-By: "+keyring+"\n")
	return c
}

// apt runs apt-get, and accepts an expired index, because the release is long ago.
func (c client) apt(args ...string) (string, error) {
	return c.real(append([]string{"-o", "Acquire::Check-Valid-Until=false"}, args...)...)
}

// real runs apt-get.
func (c client) real(args ...string) (string, error) {
	return command(c.dir, []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}, "apt-get", append([]string{
		"-o", "Dir=" + c.dir, "-o", "Dir::State::status=" + c.dir + "/root/var/lib/dpkg/status", "-o", "Dir::Bin::methods=/usr/lib/apt/methods",
		"-o", "Dir::Bin::dpkg=/usr/bin/dpkg", "-o", "APT::Architecture=amd64", "-o", "APT::Architectures=amd64", "-o", "APT::Sandbox::User=root",
		"-o", "Dpkg::Options::=--root=" + c.dir + "/root", "-o", "Dpkg::Options::=--force-architecture",
		"-o", "DPkg::Path=/usr/sbin:/usr/bin:/sbin:/bin", "-o", "Acquire::Languages=none", "-y", "-q",
		"-o", "Acquire::Check-Valid-Until=true", "-o", "Acquire::Check-Date=true"}, args...)...)
}

func (c client) must(args ...string) string {
	c.t.Helper()
	out, err := c.apt(args...)
	if err != nil {
		c.t.Fatalf("apt-get %s: %v\n%s", args, err, out)
	}
	return out
}

func TestRepository(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can install a package")
	}
	env := openpgp(t, "Perch Releases <releases@perch.example>")
	one, foreign, voice, two := small(t, "1.0.0", "amd64"), small(t, "1.0.0", "arm64"), small(t, "1.0.0", "all"), small(t, "1.1.0", "amd64")
	repository := filepath.Join(t.TempDir(), "apt")
	publish := func(to string, debs ...string) {
		t.Helper()
		output(t, ".", env, "./apt.sh", append([]string{to, "releases@perch.example"}, debs...)...)
	}
	publish(repository, one, foreign, voice)
	c := newClient(t, repository, repository+"/perch-archive-keyring.gpg")
	installed := func(want string) {
		t.Helper()
		if got := read(t, c.dir+"/root/usr/share/perch/version"); got != want+"\n" {
			t.Errorf("installed is %s, want %s", got, want)
		}
	}
	c.must("update")
	c.must("install", "perch", "perch-voice")
	installed("1.0.0")

	publish(repository, two)
	c.must("update")
	c.must("upgrade")
	installed("1.1.0")
	c.must("install", "--allow-downgrades", "perch=1.0.0") // the repository keeps the earlier version
	installed("1.0.0")

	t.Run("how long it is valid", func(t *testing.T) {
		for _, file := range []string{"Release", "InRelease"} {
			if text := read(t, repository+"/dists/stable/"+file); !strings.Contains(text, "\nDate: Tue, 14 Nov 2023 22:13:20 UTC\n") ||
				!strings.Contains(text, "\nValid-Until: Thu, 13 Nov 2025 22:13:20 UTC\n") {
				t.Errorf("%s says\n%s", file, text)
			}
		}
	})
	t.Run("the same bytes", func(t *testing.T) {
		again := filepath.Join(t.TempDir(), "apt")
		publish(again, two, foreign, voice, one)
		if out, err := command(".", nil, "diff", "-r", repository, again); err != nil {
			t.Errorf("another has other bytes: %s", out)
		}
	})
	t.Run("other bytes of one version", func(t *testing.T) {
		other := small(t, "1.1.0", "amd64")
		write(t, other, read(t, other)+" ")
		out, err := command(".", env, "./apt.sh", repository, "releases@perch.example", other)
		if err == nil || !strings.Contains(out, "with other bytes") {
			t.Errorf("it says %v %s", err, out)
		}
	})
	t.Run("a package that was changed", func(t *testing.T) {
		bad := filepath.Join(t.TempDir(), "apt")
		publish(bad, one)
		file := bad + "/pool/main/p/perch/perch_1.0.0_amd64.deb"
		write(t, file, strings.Replace(read(t, file), "debian-binary", "debian-binery", 1))
		c := newClient(t, bad, bad+"/perch-archive-keyring.gpg")
		c.must("update")
		if out, err := c.apt("install", "perch"); err == nil {
			t.Errorf("it is installed: %s", out)
		}
	})
	t.Run("an index that was changed", func(t *testing.T) {
		bad := filepath.Join(t.TempDir(), "apt")
		publish(bad, one)
		file := bad + "/dists/stable/InRelease"
		write(t, file, strings.Replace(read(t, file), "Origin: Perch", "Origin: Perck", 1))
		if out, err := newClient(t, bad, bad+"/perch-archive-keyring.gpg").apt("update"); err == nil {
			t.Errorf("it is believed: %s", out)
		}
	})
	t.Run("an old repository that somebody serves", func(t *testing.T) {
		old := filepath.Join(t.TempDir(), "apt")
		output(t, ".", append(env, "SOURCE_DATE_EPOCH=1610000000"), "./apt.sh", old, "releases@perch.example", one)
		if out, err := newClient(t, old, old+"/perch-archive-keyring.gpg").real("update"); err == nil || !strings.Contains(out, "expired") {
			t.Errorf("it is believed: %v %s", err, out)
		}
	})
	t.Run("always there", func(t *testing.T) { alwaysThere(t, env, one, two) })
	t.Run("another's key", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "apt")
		theirs := openpgp(t, "Somebody <somebody@perch.example>")
		output(t, ".", theirs, "./apt.sh", other, "somebody@perch.example", one)
		if out, err := newClient(t, other, repository+"/perch-archive-keyring.gpg").apt("update"); err == nil {
			t.Errorf("it is believed: %s", out)
		}
	})
	t.Run("no key", func(t *testing.T) {
		out, err := command(".", env, "./apt.sh", t.TempDir(), "nobody@perch.example", one)
		if err == nil || !strings.Contains(out, "gpg has no secret key nobody@perch.example; make one with: gpg --quick-generate-key") {
			t.Errorf("it says %v %s", err, out)
		}
	})
}

// alwaysThere publishes repeatedly, and checks at the same time that the index always exists. At the end only one
// folder of the distribution may exist.
func alwaysThere(t *testing.T, env []string, one, two string) {
	repository := filepath.Join(t.TempDir(), "apt")
	output(t, ".", env, "./apt.sh", repository, "releases@perch.example", one)
	stop, ended := make(chan struct{}), make(chan struct{})
	reads := 0
	var missing error
	go func() {
		defer close(ended)
		for ; missing == nil; reads++ {
			select {
			case <-stop:
				return
			default:
				_, missing = os.Stat(repository + "/dists/stable/InRelease")
			}
		}
	}()
	for range 3 {
		output(t, ".", env, "./apt.sh", repository, "releases@perch.example", two)
	}
	close(stop)
	<-ended
	if missing != nil || reads < 100 {
		t.Errorf("after %d reads: %v", reads, missing)
	}
	if left, _ := filepath.Glob(repository + "/dists/*"); len(left) != 1 {
		t.Errorf("there is %v", left)
	}
}

func TestReleaseRefusesBeforeBuilding(t *testing.T) {
	env := openpgp(t, "releases@perch.example")
	dir := t.TempDir()
	for _, name := range []string{"build.sh", "notes.sh", "apt.sh"} {
		write(t, dir+"/packaging/release/"+name, read(t, name))
		must.Succeed(t, os.Chmod(dir+"/packaging/release/"+name, 0o755))
	}
	write(t, dir+"/CHANGELOG.md", "# Changes\n\n## Unreleased\n\n## 1.2.0\n\n- It is.\n")
	key := filepath.Join(t.TempDir(), "key")
	output(t, dir, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	git := func(args ...string) {
		output(t, dir, nil, "git", append([]string{"-c", "user.name=N", "-c", "user.email=n@perch.example", "-c", "commit.gpgsign=false"}, args...)...)
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-q", "-m", "first")
	git("tag", "v2.0.0")
	git("commit", "-q", "--allow-empty", "-m", "second")
	keys := []string{"PERCH_SSH_KEY=" + key, "PERCH_GPG_KEY=releases@perch.example"}
	for _, c := range []struct {
		name, version string
		env           []string
		says          string
	}{
		{"no version", "", keys, "make release VERSION=1.2.0"},
		{"a name", "next", keys, "next is no version such as 1.2.0"},
		{"two lines", "1.2.0\nrm", keys, "is no version"},
		{"a part", "1.2.0", append(keys, "PERCH_PARTS=cake"), "not cake"},
		{"another's tag", "2.0.0", keys, "v2.0.0 is another commit"},
		{"no notes", "1.3.0", keys, `no part "## 1.3.0"; rename its part "Unreleased"`},
		{"no place", "1.2.0", keys, "PERCH_DOWNLOAD=https://"},
		{"no key", "1.2.0", []string{"PERCH_PARTS=deb"}, "ssh-keygen -t ed25519 -f FILE makes one"},
		{"a key that is none", "1.2.0", []string{"PERCH_PARTS=deb", "PERCH_SSH_KEY=" + dir + "/CHANGELOG.md", "SSH_AUTH_SOCK="},
			"CHANGELOG.md cannot be used"},
		{"no key of gpg", "1.2.0", []string{"PERCH_PARTS=deb", keys[0]}, "gpg --quick-generate-key"},
		{"an unknown key of gpg", "1.2.0", []string{"PERCH_PARTS=deb", keys[0], "PERCH_GPG_KEY=x@perch.example"}, "gpg has no secret key x@"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := command(dir, append(env, c.env...), "packaging/release/build.sh", c.version)
			if err == nil || !strings.Contains(out, c.says) || strings.Contains(out, "clones") {
				t.Errorf("it says %v %s, not %q", err, out, c.says)
			}
		})
	}
	t.Run("changes", func(t *testing.T) {
		write(t, dir+"/new", "x")
		if out, err := command(dir, append(env, keys...), "packaging/release/build.sh", "1.2.0"); err == nil || !strings.Contains(out, "?? new") {
			t.Errorf("it says %v %s", err, out)
		}
	})
	t.Run("notes", func(t *testing.T) {
		if out := output(t, dir, nil, "packaging/release/notes.sh", "1.2.0"); out != "# Perch 1.2.0\n\n- It is.\n" {
			t.Errorf("the notes are %q", out)
		}
	})
}
