// Package packaging_test installs the Debian packages in a clean Debian and checks the installation.
package packaging_test

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/must"
)

// sonames maps the libraries that programs are linked with to the Debian packages of the libraries.
var sonames = map[string]string{
	"libc.so.6": "libc6", "ld-linux-x86-64.so.2": "libc6", "ld-linux-aarch64.so.1": "libc6", "libopus.so.0": "libopus0",
	"libspeexdsp.so.1":     "libspeexdsp1",
	"libpocketsphinx.so.3": "libpocketsphinx3", "libsphinxbase.so.3": "libsphinxbase3",
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// command runs a program and returns its output. env holds variables of the form NAME=VALUE.
func command(t *testing.T, env []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func output(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	out, err := command(t, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// needs skips the test unless it runs as root and the programs are installed.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can install a package into a root of its own")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed: packaging/deps.sh deb installs it", p)
		}
	}
}

// packages builds packages of a version and returns their files by NAME_ARCHITECTURE. Without arches it builds
// them for both architectures, for this machine's first.
func packages(t *testing.T, dir, version string, arches ...string) map[string]string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "./deb.sh", append([]string{dir}, arches...)...)
	// PERCH_XZ=1 compresses less, which takes a fifth of the time.
	c.Env = append(os.Environ(), "PERCH_VERSION="+version, "PERCH_HOMEPAGE=https://perch.example/", "PERCH_XZ=1")
	var steps bytes.Buffer
	c.Stderr = &steps
	out, err := c.Output()
	if err != nil {
		t.Fatalf("deb.sh: %v\n%s", err, &steps)
	}
	own := strings.TrimSpace(output(t, nil, "dpkg", "--print-architecture"))
	if first, _, _ := strings.Cut(string(out), "\n"); !strings.HasSuffix(first, "_"+own+".deb") {
		t.Errorf("first it makes %s on %s", first, own)
	}
	if !strings.Contains(steps.String(), "deb: compiles perch for "+own+"\n") || !strings.Contains(steps.String(), "sudo apt install "+dir) {
		t.Errorf("it says of what it does\n%s", &steps)
	}
	built := map[string]string{}
	for line := range strings.Lines(string(out)) {
		file := strings.TrimSpace(line)
		name, rest, ok := strings.Cut(filepath.Base(file), "_"+version+"_")
		if !ok {
			t.Fatalf("deb.sh said %q", line)
		}
		built[name+"_"+strings.TrimSuffix(rest, ".deb")] = file
	}
	return built
}

func TestPackages(t *testing.T) {
	if testing.Short() {
		t.Skip("packages take minutes to build and install, in make test-all")
	}
	needs(t, "mmdebstrap", "dpkg-deb", "aarch64-linux-gnu-gcc", "x86_64-linux-gnu-gcc")
	dir := t.TempDir()
	made := newRoot(t)
	old := packages(t, dir, "1.0.0")
	for _, name := range []string{"perch_amd64", "perch_arm64", "perch-tools_amd64", "perch-tools_arm64"} {
		t.Run(name, func(t *testing.T) { linked(t, old[name], name) })
	}
	own := strings.TrimSpace(output(t, nil, "dpkg", "--print-architecture"))
	if machines[own] == 0 {
		t.Fatalf("this machine is %s; the packages are not for it", own)
	}
	newer := packages(t, dir, "1.0.1", own)
	r := made()
	t.Run("installed", func(t *testing.T) { installed(t, r, old["perch_"+own], old["perch-tools_"+own]) })
	t.Run("unit", func(t *testing.T) { unit(t, r) })
	t.Run("keys", func(t *testing.T) { keys(t, r) })
	t.Run("used", func(t *testing.T) { used(t, r) })
	t.Run("booted", func(t *testing.T) { booted(t, r) })
	t.Run("upgraded", func(t *testing.T) { upgraded(t, r, newer["perch_"+own]) })
	t.Run("removed and purged", func(t *testing.T) { purged(t, r) })
}

// TestSpeechPackages installs perch-speech and its voice in a clean Debian, and lets the voice speak there.
func TestSpeechPackages(t *testing.T) {
	if testing.Short() {
		t.Skip("packages take minutes to build and install, in make test-all")
	}
	needs(t, "mmdebstrap", "dpkg-deb", "aarch64-linux-gnu-gcc", "x86_64-linux-gnu-gcc")
	dir := t.TempDir()
	made := newRoot(t)
	out, err := command(t, []string{"PERCH_VERSION=1.0.0", "PERCH_HOMEPAGE=https://perch.example/", "PERCH_XZ=1", "PERCH_PACKAGES=perch-speech perch-speech-voice-en"}, "./deb.sh", dir)
	if err != nil && strings.Contains(out, "is this machine on the internet?") {
		t.Skip("the voice cannot be downloaded: ", out)
	} else if err != nil {
		t.Fatalf("deb.sh: %v\n%s", err, out)
	}
	own := strings.TrimSpace(output(t, nil, "dpkg", "--print-architecture"))
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			linked(t, filepath.Join(dir, "perch-speech_1.0.0_"+arch+".deb"), "perch-speech_"+arch)
		})
	}
	r := made()
	r.must(t, "apt-get", "update", "-q")
	r.install(t, filepath.Join(dir, "perch-speech_1.0.0_"+own+".deb"), filepath.Join(dir, "perch-speech-voice-en_1.0.0_all.deb"))
	// Not root, like the service, which cannot write into the folder of the voice.
	check := []string{"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env", "HOME=/nonexistent", "perch-speech", "models", "check"}
	if said := r.must(t, check...); !strings.Contains(said, "en_US-joe-medium speaks:") {
		t.Errorf("perch-speech models check says\n%s", said)
	}
	if out, err := r.run(t, "perch-speech", "models", "remove", "en_US-joe-medium"); err == nil || !strings.Contains(out, "apt remove") {
		t.Errorf("perch-speech models remove says %v\n%s", err, out)
	}
	if out, err := r.run(t, "dpkg", "--verify", "perch-speech", "perch-speech-voice-en"); err != nil || out != "" {
		t.Errorf("dpkg --verify: %v %s", err, out)
	}
	r.must(t, "apt-get", "purge", "-y", "-q", "perch-speech", "perch-speech-voice-en")
	if left := r.must(t, "find", "/usr", "/etc", "/var/lib/systemd", "-name", "*perch*"); left != "" {
		t.Errorf("left over:\n%s", left)
	}
}

// linked checks that a package depends on the libraries that its programs are linked with, and that the programs
// run with the C library of the oldest supported Debian.
func linked(t *testing.T, deb, name string) {
	root := t.TempDir()
	output(t, nil, "dpkg-deb", "-x", deb, root)
	program, arch, _ := strings.Cut(name, "_")
	if got := strings.TrimSpace(output(t, nil, "dpkg-deb", "-f", deb, "Architecture")); got != arch {
		t.Errorf("the package is for %s", got)
	}
	if got := output(t, nil, "dpkg-deb", "-f", deb, "Homepage", "Maintainer"); !strings.Contains(got, "Homepage: https://perch.example/\n") ||
		strings.Contains(got, "localhost") {
		t.Errorf("it is from\n%s", got)
	}
	if program == "perch" {
		documented(t, filepath.Join(root, "usr/share/doc/perch"))
	}
	f := must.Value(elf.Open(filepath.Join(root, "usr/bin", program)))(t)
	defer f.Close()
	if f.Machine != machines[arch] {
		t.Errorf("the program is for %v", f.Machine)
	}
	// Loading a program with such relocations needs memory that is writable and executable, which the unit forbids.
	if text, err := f.DynValue(elf.DT_TEXTREL); err != nil || len(text) > 0 {
		t.Errorf("the program has relocations in its text: %v, %v", text, err)
	}
	depends := strings.TrimSpace(output(t, nil, "dpkg-deb", "-f", deb, "Depends"))
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) == 0 {
		t.Fatalf("libraries %v, %v", libraries, err)
	}
	for _, library := range libraries {
		if _, err := os.Stat(filepath.Join(root, "usr/lib", program, library)); err == nil {
			continue // in the package itself
		}
		if p := sonames[library]; p == "" || !regexp.MustCompile(`(^|, )`+p+`($|,| )`).MatchString(depends) {
			t.Errorf("%s is needed, and no package of it among: %s", library, depends)
		}
	}
	symbols := must.Value(f.ImportedSymbols())(t)
	for _, s := range symbols {
		minor, versioned := strings.CutPrefix(s.Version, "GLIBC_2.")
		if versioned && len(minor) >= 2 && minor[:2] > "34" {
			t.Errorf("%s is of %s; the package says libc6 (>= 2.34)", s.Name, s.Version)
		}
	}
}

// documented checks that a package has pages of documentation, and the targets of their links.
func documented(t *testing.T, dir string) {
	pages := 0
	err := filepath.WalkDir(dir, func(page string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(page) != ".md" {
			return err
		}
		pages++
		text, err := os.ReadFile(page)
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
		return err
	})
	if err != nil || pages < 20 {
		t.Errorf("%d pages, %v", pages, err)
	}
}

// root is a clean Debian in a folder.
type root struct{ path string }

// newRoot starts to create a root of the oldest supported Debian, with the minimum of packages, while the packages
// of Perch are built. The returned function waits for the root.
func newRoot(t *testing.T) func() root {
	t.Helper()
	r := root{filepath.Join(t.TempDir(), "root")}
	var out string
	var err error
	made := make(chan struct{})
	go func() {
		defer close(made)
		out, err = command(t, nil, "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "bookworm", r.path)
	}()
	t.Cleanup(func() { <-made })
	return func() root {
		if <-made; err != nil {
			t.Fatalf("mmdebstrap: %v\n%s", err, out)
		}
		for _, name := range []string{"/etc/resolv.conf", "/etc/hosts"} {
			if text, err := os.ReadFile(name); err == nil { // the root downloads packages from the same servers as this machine
				must.Succeed(t, os.WriteFile(filepath.Join(r.path, name), text, 0o644))
			}
		}
		r.withProc(t)
		t.Cleanup(func() { r.withoutProc(t) })
		return r
	}
}

func (r root) withProc(t *testing.T) {
	if err := syscall.Mount("proc", filepath.Join(r.path, "proc"), "proc", 0, ""); err != nil {
		t.Skip("/proc cannot be mounted here: ", err)
	}
}

func (r root) withoutProc(t *testing.T) {
	must.Succeed(t, syscall.Unmount(filepath.Join(r.path, "proc"), 0))
}

// run runs a program in the root and returns its output.
func (r root) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return command(t, []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
		"chroot", append([]string{r.path}, args...)...)
}

func (r root) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.run(t, args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// install installs packages from their files, with their dependencies, and returns the output.
func (r root) install(t *testing.T, debs ...string) (said string) {
	t.Helper()
	args := []string{"apt-get", "install", "-y", "-q", "--no-install-recommends"}
	for _, deb := range debs {
		output(t, nil, "cp", deb, r.path+"/")
		args = append(args, "/"+filepath.Base(deb))
	}
	return r.must(t, args...)
}

func (r root) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(r.path, path)) // not Stat, because an absolute link in the root would be followed outside of it
	return err == nil
}

// installed installs the packages for the first time, and checks the output and the files.
func installed(t *testing.T, r root, debs ...string) {
	r.must(t, "apt-get", "update", "-q")
	said := r.install(t, debs...)
	for _, next := range []string{"Custom OTA URL:\n    http://perch.local:8003/xiaozhi/ota/\n", ":8003/\n    sudo perch open\n", "    sudo perch doctor\n"} {
		if !strings.Contains(said, next) {
			t.Errorf("the installation does not end with %q:\n%s", next, said)
		}
	}
	for path, want := range map[string]string{
		"/usr/bin/perch":                                 "root root 755",
		"/usr/bin/perch-tools":                           "root root 755",
		"/etc/perch":                                     "root root 755",
		"/etc/perch/perch.yaml":                          "root perch 640",
		"/etc/perch/secrets":                             "root root 700",
		"/usr/lib/systemd/system/perch.service":          "root root 644",
		"/usr/share/man/man1/perch.1.gz":                 "root root 644",
		"/usr/share/man/man1/perch-tools.1.gz":           "root root 644",
		"/usr/share/doc/perch/copyright":                 "root root 644",
		"/usr/share/doc/perch/examples/perch.yaml":       "root root 644",
		"/usr/share/bash-completion/completions/perch":   "root root 644",
		"/usr/share/zsh/vendor-completions/_perch-tools": "root root 644",
	} {
		if got := strings.TrimSpace(r.must(t, "stat", "-c", "%U %G %a", path)); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if passwd := r.must(t, "getent", "passwd", "perch"); !strings.Contains(passwd, ":/var/lib/perch:/usr/sbin/nologin") {
		t.Errorf("the user is %s", passwd)
	}
	if !r.exists("/etc/systemd/system/multi-user.target.wants/perch.service") {
		t.Error("it does not start with the machine")
	}
	if out := r.must(t, "perch", "version"); !strings.HasPrefix(out, "perch 1.0.0\n") {
		t.Errorf("perch version says %s", out)
	}
	r.must(t, "perch", "check-config")
	r.must(t, "perch", "check-config", "/usr/share/doc/perch/examples/perch.yaml")
	if out, err := r.run(t, "dpkg", "--verify", "perch", "perch-tools"); err != nil || out != "" {
		t.Errorf("dpkg --verify: %v %s", err, out)
	}
}

// keys creates a key file that only root can read. check-config and doctor must report that the service cannot
// read the file, with a command that corrects this. In the folder for secrets the same file must be accepted.
func keys(t *testing.T, r root) {
	configure := func(key string) {
		t.Helper()
		text := "brains: [{kind: openai, url: \"http://127.0.0.1:9/v1\", model: m, key_file: " + key + "}, {kind: reflex}]\n"
		must.Succeed(t, os.WriteFile(filepath.Join(r.path, "etc/perch/perch.yaml"), []byte(text), 0o640))
	}
	before := must.Value(os.ReadFile(filepath.Join(r.path, "etc/perch/perch.yaml")))(t)
	defer func() {
		r.must(t, "rm", "-f", "/etc/perch/brain.key", "/etc/perch/secrets/brain")
		if err := os.WriteFile(filepath.Join(r.path, "etc/perch/perch.yaml"), before, 0o640); err != nil {
			t.Error(err)
		}
	}()
	for _, key := range []string{"/etc/perch/brain.key", "/etc/perch/secrets/brain"} {
		r.must(t, "sh", "-c", "umask 077; echo secret >"+key)
	}
	configure("/etc/perch/secrets/brain")
	if out := r.must(t, "perch", "check-config"); !strings.Contains(out, "no faults") {
		t.Errorf("check-config says %s", out)
	}
	configure("/etc/perch/brain.key")
	const mend = "chgrp perch /etc/perch/brain.key && sudo chmod g+r /etc/perch/brain.key"
	for _, command := range []string{"check-config", "doctor"} {
		out, err := r.run(t, "perch", command)
		if err == nil || !strings.Contains(out, "the user perch cannot read /etc/perch/brain.key (owner root:root, mode 0600); sudo "+mend) {
			t.Errorf("%s says %v %s", command, err, out)
		}
	}
	r.must(t, "sh", "-c", strings.ReplaceAll(mend, "sudo ", ""))
	if out := r.must(t, "perch", "check-config"); !strings.Contains(out, "no faults") {
		t.Errorf("once it is mended check-config says %s", out)
	}
}

// unit checks the unit with systemd-analyze.
func unit(t *testing.T, r root) {
	out, err := r.run(t, "systemd-analyze", "verify", "perch.service")
	for line := range strings.Lines(out) {
		if strings.Contains(line, "perch") && !strings.Contains(line, "man perch(1)") { // there is no man in this root
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
	if err != nil && !strings.Contains(out, "man perch(1)") {
		t.Errorf("systemd-analyze verify: %v %s", err, out)
	}
	out = r.must(t, "systemd-analyze", "security", "--offline=true", "--threshold=25", "--no-pager", "/usr/lib/systemd/system/perch.service")
	_, exposure, ok := strings.Cut(out, "Overall exposure level")
	if !ok {
		t.Errorf("systemd-analyze security: %s", out)
	}
	page := must.Value(os.ReadFile("../docs/package.md"))(t)
	figure := regexp.MustCompile(`exposure ([0-9.]+) on Debian 12`).FindSubmatch(page)
	if figure == nil || !strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(exposure, " for perch.service:")), string(figure[1])+" ") {
		t.Errorf("the exposure is%s, and not what docs/package.md says: %s", exposure, figure)
	}
}

// serving runs the installed program as its unit does, until the end of the test, and returns the URL for the
// check-ins of robots.
func (r root) serving(t *testing.T) (ota string) {
	t.Helper()
	r.must(t, "install", "-d", "-o", "perch", "-g", "perch", "-m", "750", "/var/lib/perch", "/run/perch")
	c := exec.Command("chroot", "--userspec=perch:perch", r.path, "/usr/bin/perch", "serve", "--listen", "127.0.0.1:0", "--local", "127.0.0.1:0")
	c.Env = []string{"HOME=/var/lib/perch", "STATE_DIRECTORY=/var/lib/perch", "RUNTIME_DIRECTORY=/run/perch", "PERCH_MQTT_BROKER=none",
		"PATH=/usr/bin:/bin"}
	logged := must.Value(c.StderrPipe())(t)
	must.Succeed(t, c.Start())
	lines, all, ended := make(chan string, 1000), &bytes.Buffer{}, make(chan error, 1)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(logged); s.Scan(); {
			lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		for line := range lines {
			all.WriteString(line + "\n")
		}
		go func() { ended <- c.Wait() }()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v\n%s", err, all)
		}
	})
	ready := regexp.MustCompile(`perch is ready.*listen=\[?"?\[?([0-9.:]+)`)
	for deadline := time.After(time.Minute); ; {
		select {
		case line, ok := <-lines:
			all.WriteString(line + "\n")
			if found := ready.FindStringSubmatch(line); found != nil {
				return "http://" + found[1] + "/xiaozhi/ota/"
			}
			if !ok {
				t.Fatalf("it ended before it was ready:\n%s", all)
			}
		case <-deadline:
			t.Fatalf("it is not ready:\n%s", all)
		}
	}
}

// used runs a robot with the installed appliance, and lists the robots as the owner does.
func used(t *testing.T, r root) {
	ota := r.serving(t)
	// The simulated robot has no synthesizer and sends silence.
	out := r.must(t, "perch-tools", "robot", "--ota", ota, "--mac", "02:00:00:00:00:01", "--event", `face_detected={}`)
	if !strings.Contains(out, "hello") {
		t.Errorf("the robot says\n%s", out)
	}
	if out := r.must(t, "perch", "robot", "list"); !strings.Contains(out, "020000000001") && !strings.Contains(out, "02:00:00:00:00:01") {
		t.Errorf("perch robot list says\n%s", out)
	}
	for path, want := range map[string]string{
		"/var/lib/perch":             "perch perch 750",
		"/run/perch/perch.sock":      "perch perch 660",
		"/var/lib/perch/admin-token": "perch perch 600",
		"/var/lib/perch/token-key":   "perch perch 600",
		"/var/lib/perch/perch.db":    "perch perch 600",
	} {
		if got := strings.TrimSpace(r.must(t, "stat", "-c", "%U %G %a", path)); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// upgraded installs a newer version over one that has data and an invalid configuration, which must not change.
func upgraded(t *testing.T, r root, deb string) {
	const faulty = "name: kitchen\nno_such_key: 1\n"
	must.Succeed(t, os.WriteFile(filepath.Join(r.path, "etc/perch/perch.yaml"), []byte(faulty), 0o640))
	before := r.must(t, "sh", "-c", "cd /var/lib/perch && sha256sum perch.db admin-token token-key")
	r.install(t, deb)
	if out := r.must(t, "perch", "version"); !strings.HasPrefix(out, "perch 1.0.1\n") {
		t.Errorf("perch version says %s", out)
	}
	if got, _ := os.ReadFile(filepath.Join(r.path, "etc/perch/perch.yaml")); string(got) != faulty {
		t.Errorf("the configuration is now %q", got)
	}
	if got := strings.TrimSpace(r.must(t, "stat", "-c", "%U %G %a", "/etc/perch/perch.yaml")); got != "root perch 640" {
		t.Errorf("the configuration is now %s", got)
	}
	if after := r.must(t, "sh", "-c", "cd /var/lib/perch && sha256sum perch.db admin-token token-key"); after != before {
		t.Error("what it keeps is not what it was")
	}
	if out, err := r.run(t, "perch", "check-config"); err == nil || !strings.Contains(out, "no_such_key") {
		t.Errorf("check-config says %v %s", err, out)
	}
	must.Succeed(t, os.WriteFile(filepath.Join(r.path, "etc/perch/perch.yaml"), nil, 0o640))
	r.serving(t)
	if out := r.must(t, "perch", "robot", "list"); !strings.Contains(strings.ReplaceAll(out, ":", ""), "020000000001") {
		t.Errorf("after the upgrade perch robot list says\n%s", out)
	}
}

// purged removes the packages, which keeps the data and the configuration, and then purges the packages, which
// deletes both.
func purged(t *testing.T, r root) {
	key := filepath.Join(r.path, "etc/perch/secrets/own")
	must.Succeed(t, os.WriteFile(key, []byte("a key of the owner's\n"), 0o600))
	r.must(t, "apt-get", "remove", "-y", "-q", "perch", "perch-tools")
	if !r.exists("/var/lib/perch/perch.db") || !r.exists("/etc/perch/perch.yaml") {
		t.Error("removing it took what it kept")
	}
	if r.exists("/usr/bin/perch") || r.exists("/usr/bin/perch-tools") {
		t.Error("a program is still there")
	}
	r.must(t, "apt-get", "purge", "-y", "-q", "perch")
	if _, err := os.Stat(key); err != nil {
		t.Error("a purge took a key that is the owner's")
	}
	_ = os.Remove(key)
	var left []string
	for _, dir := range []string{"var/lib/perch", "etc/perch", "etc/systemd", "usr/lib/systemd", "var/lib/systemd"} {
		_ = filepath.WalkDir(filepath.Join(r.path, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && strings.Contains(path[len(r.path):], "perch") && !d.IsDir() {
				left = append(left, path[len(r.path):])
			}
			return nil
		})
	}
	if slices.Sort(left); len(left) > 0 || r.exists("/var/lib/perch") {
		t.Errorf("left over: %v", left)
	}
}
