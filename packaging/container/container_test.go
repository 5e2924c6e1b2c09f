// Package container_test reads the container image with standard tools, and runs the image as
// docs/container.md describes: without root, and with its data as the only writable folder. make test-container
// runs the tests. They are skipped unless PERCH_CONTAINER names the archive of the image.
package container_test

import (
	"context"
	"debug/elf"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/must"
)

// owner is the container's user.
const owner = 8003

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// image returns the archive of the image. It skips the test if there is no archive, or without root.
func image(t *testing.T) string {
	t.Helper()
	archive := os.Getenv("PERCH_CONTAINER")
	if archive == "" {
		t.Skip("PERCH_CONTAINER names no image; make test-container makes one")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can unpack an image with its owners")
	}
	return archive
}

// descriptors are the fields of an image index that the tests use.
type descriptors struct {
	Manifests []struct {
		Digest   string
		Platform struct{ Architecture, OS string }
	}
}

type configuration struct {
	Architecture, Created string
	Config                struct {
		User                 string
		Entrypoint, Cmd, Env []string
		Labels               map[string]string
		Volumes              map[string]any
		Healthcheck          struct{ Test []string }
	}
}

// architectures returns the architectures that the image supports.
func architectures(t *testing.T, archive string) (all []string) {
	t.Helper()
	var d descriptors
	must.Succeed(t, json.Unmarshal([]byte(output(t, "skopeo", "inspect", "--raw", "oci-archive:"+archive)), &d))
	for _, m := range d.Manifests {
		if m.Platform.OS != "linux" {
			t.Errorf("one is for %v", m.Platform)
		}
		all = append(all, m.Platform.Architecture)
	}
	return all
}

// unpacked unpacks the image for an architecture into a bundle for an OCI runtime, and returns the folder of the
// bundle.
func unpacked(t *testing.T, archive, arch string) string {
	t.Helper()
	dir := t.TempDir()
	output(t, "skopeo", "copy", "--quiet", "--override-arch", arch, "oci-archive:"+archive, "oci:"+dir+"/layout:one")
	output(t, "umoci", "unpack", "--image", dir+"/layout:one", dir+"/bundle")
	return dir + "/bundle"
}

func TestImage(t *testing.T) {
	archive := image(t)
	all := architectures(t, archive)
	if len(all) == 0 {
		t.Fatal("it is for no architecture")
	}
	own := strings.TrimSpace(output(t, "dpkg", "--print-architecture"))
	for _, arch := range all {
		t.Run(arch, func(t *testing.T) {
			told(t, archive, arch)
			bundle := unpacked(t, archive, arch)
			root := filepath.Join(bundle, "rootfs")
			contents(t, root, arch)
			libraries(t, root, arch)
			if arch == own {
				runs(t, bundle)
			}
		})
	}
}

// told checks the configuration of an image.
func told(t *testing.T, archive, arch string) {
	var c configuration
	if err := json.Unmarshal([]byte(output(t, "skopeo", "inspect", "--raw", "--config", "--override-arch", arch, "oci-archive:"+archive)),
		&c); err != nil {
		t.Fatal(err)
	}
	hass := map[string]string{"amd64": "amd64", "arm64": "aarch64"}[arch]
	version := c.Config.Labels["org.opencontainers.image.version"]
	if c.Architecture != arch || version == "" || c.Config.Labels["io.hass.version"] != version || c.Config.Labels["io.hass.type"] != "app" ||
		c.Config.Labels["io.hass.arch"] != hass || c.Config.Labels["org.opencontainers.image.licenses"] != "MIT" {
		t.Errorf("for %s it says %+v", arch, c)
	}
	if c.Config.User != "8003:8003" || !slices.Equal(c.Config.Entrypoint, []string{"/usr/bin/perch"}) ||
		!slices.Equal(c.Config.Cmd, []string{"serve"}) ||
		c.Config.Volumes["/var/lib/perch"] == nil || !slices.Equal(c.Config.Healthcheck.Test, []string{"CMD", "/usr/bin/perch", "health"}) {
		t.Errorf("it runs as %+v", c.Config)
	}
}

// contents checks that an image contains no data, secrets or caches of the machine that built it.
func contents(t *testing.T, root, arch string) {
	for _, dir := range []string{"var/lib/perch", "etc/perch/secrets", "var/log", "var/lib/apt/lists/partial", "tmp", "run", "root/.cache"} {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err == nil && len(entries) > 0 {
			t.Errorf("there is %s in %s", entries[0], dir)
		}
	}
	for _, name := range []string{"etc/machine-id", "etc/hostname", "etc/resolv.conf", "etc/apt/sources.list"} {
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.Size() > 0 {
			t.Errorf("there is %s in it", name)
		}
	}
	shadow, err := os.ReadFile(filepath.Join(root, "etc/shadow"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(shadow)) {
		if fields := strings.Split(line, ":"); len(fields) > 1 && !strings.HasPrefix(fields[1], "*") && !strings.HasPrefix(fields[1], "!") {
			t.Errorf("%s has a password", fields[0])
		}
	}
	files := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		files++
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("%s gives rights", path[len(root):])
		}
		if stat := info.Sys().(*syscall.Stat_t); stat.Uid == owner && path != root+"/var/lib/perch" && path != root+"/etc/perch/secrets" {
			t.Errorf("%s is the container's to change", path[len(root):])
		}
		return err
	})
	if err != nil || files < 2000 {
		t.Errorf("it has %d files (%v)", files, err)
	}
	program := must.Value(elf.Open(filepath.Join(root, "usr/bin/perch")))(t)
	defer program.Close()
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; program.Machine != want {
		t.Errorf("its program is for %s", program.Machine)
	}
}

// libraries checks that the image's loader finds the libraries of the program, and that espeak-ng speaks. For a
// foreign architecture, the programs are emulated.
func libraries(t *testing.T, root, arch string) {
	loader := map[string]string{"amd64": "/lib64/ld-linux-x86-64.so.2", "arm64": "/lib/ld-linux-aarch64.so.1"}[arch]
	out := output(t, "chroot", root, loader, "--list", "/usr/bin/perch")
	if strings.Contains(out, "not found") || !strings.Contains(out, "libpocketsphinx") {
		t.Errorf("the loader says\n%s", out)
	}
	if out := output(t, "chroot", root, "/usr/bin/espeak-ng", "--stdout", "hello"); !strings.HasPrefix(out, "RIFF") || len(out) < 10000 {
		t.Errorf("the voice says %d bytes", len(out))
	}
}

// runs starts the image in a separate network, and sends the check-in of a robot.
func runs(t *testing.T, bundle string) {
	data, id := filepath.Join(t.TempDir(), "data"), "perch-test-"+filepath.Base(filepath.Dir(filepath.Dir(t.TempDir())))
	must.Succeed(t, os.Mkdir(data, 0o750))
	must.Succeed(t, os.Chown(data, owner, owner))
	restrict(t, filepath.Join(bundle, "config.json"), data)
	state := filepath.Join(filepath.Dir(bundle), "state")
	// On a kernel with both versions of control groups, crun needs version 2 alone.
	const newer = `mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null; exec "$@"`
	crun := func(args ...string) *exec.Cmd {
		return exec.Command("unshare", append([]string{"--mount", "sh", "-c", newer, "sh", "crun", "--root", state, "--cgroup-manager", "disabled"},
			args...)...)
	}
	logged := filepath.Join(t.TempDir(), "log")
	log := must.Value(os.Create(logged))(t)
	defer log.Close()
	// The runtime changes the owner of its standard input to the container's user. This must not be done to
	// this machine's /dev/null.
	stdin := func(c *exec.Cmd) *exec.Cmd {
		c.Stdin = strings.NewReader("")
		return c
	}
	// The network has only a loopback interface, which must be set up here because the runtime does not.
	c := stdin(exec.Command("unshare", append([]string{"--net", "sh", "-c", `ip link set lo up && exec "$@"`, "sh"},
		crun("run", "--bundle", bundle, id).Args...)...))
	c.Stdout, c.Stderr = log, log
	must.Succeed(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	running := true
	t.Cleanup(func() {
		if running {
			_ = crun("delete", "--force", id).Run()
			<-ended
		}
		if text, _ := os.ReadFile(logged); t.Failed() {
			t.Logf("it logged\n%s", text)
		}
	})
	within := func(args ...string) (string, error) {
		out, err := stdin(crun(append([]string{"exec", "--user", "8003:8003", id}, args...)...)).CombinedOutput()
		return string(out), err
	}
	for deadline := time.Now().Add(2 * time.Minute); ; {
		out, err := within("/usr/bin/perch", "health")
		if err == nil && out == "healthy\n" {
			break
		}
		select {
		case err := <-ended:
			running = false
			t.Fatalf("it ended: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is not healthy: %v %s", err, out)
		}
	}
	for _, path := range []string{"/x", "/etc/x", "/tmp/x", "/run/x", "/etc/perch/perch.yaml", "/usr/bin/perch"} {
		if out, err := within("/bin/sh", "-c", "echo x >>"+path); err == nil {
			t.Errorf("%s can be written: %s", path, out)
		}
	}
	if out, err := within("/bin/sh", "-c", "id -u; cat /proc/1/status"); err != nil || !strings.HasPrefix(out, "8003\n") ||
		!strings.Contains(out, "CapEff:\t0000000000000000\n") || !strings.Contains(out, "CapBnd:\t0000000000000000\n") {
		t.Errorf("it runs as %s (%v)", out, err)
	}
	// The requests of a monitor and of a robot, sent inside the container's network.
	pid := strings.TrimSpace(string(first(t, crun("list", "--format", "json"))))
	ready := output(t, "nsenter", "--target", pid, "--net", "curl", "-sS", "http://127.0.0.1:8003/ready")
	for _, part := range []string{`"store"`, `"parts"`} {
		if !strings.Contains(ready, part) {
			t.Errorf("/ready says %s", ready)
		}
	}
	// mDNS cannot work in this network, which has only a loopback interface.
	failed := slices.DeleteFunc(failing(t, ready), func(name string) bool { return strings.HasPrefix(name, "mdns: no network interface") })
	if len(failed) > 0 {
		t.Errorf("these fail: %s", failed)
	}
	checkin := output(t, "nsenter", "--target", pid, "--net", "curl", "-sS", "-H", "Device-Id: 02:00:00:00:00:01", "-H", "Client-Id: 6b1c",
		"-d", `{"mac_address":"02:00:00:00:00:01","application":{"version":"2.2.4"},"board":{"type":"m5stack-stack-chan"}}`,
		"http://127.0.0.1:8003/xiaozhi/ota/")
	if !strings.Contains(checkin, `"websocket"`) {
		t.Errorf("a check-in is answered %s", checkin)
	}
	memory := must.Value(os.ReadFile("/proc/" + pid + "/status"))(t)
	for line := range strings.Lines(string(memory)) {
		if strings.HasPrefix(line, "VmRSS") || strings.HasPrefix(line, "VmHWM") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if out, err := crun("kill", id, "TERM").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	running = false
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(time.Minute):
		running = true
		t.Error("it does not end")
	}
	if info, err := os.Stat(filepath.Join(data, "perch.db")); err != nil || info.Sys().(*syscall.Stat_t).Uid != owner {
		t.Errorf("its database: %v", err)
	}
}

// failing returns the parts that are not OK in the response of /ready.
func failing(t *testing.T, ready string) (names []string) {
	t.Helper()
	var answer struct {
		Parts []struct {
			Name, Note string
			OK         bool
		}
	}
	if err := json.Unmarshal([]byte(ready), &answer); err != nil {
		t.Fatalf("%v: %s", err, ready)
	}
	for _, p := range answer.Parts {
		if !p.OK {
			names = append(names, p.Name+": "+p.Note)
		}
	}
	return names
}

// first returns the process ID of the only container in a list.
func first(t *testing.T, list *exec.Cmd) []byte {
	t.Helper()
	out, err := list.Output()
	var all []struct{ PID int }
	if err := json.Unmarshal(out, &all); err != nil || len(all) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	pid, fault := json.Marshal(all[0].PID)
	if err != nil || fault != nil {
		t.Fatal(err, fault)
	}
	return pid
}

// restrict changes the configuration of a bundle as docs/container.md recommends: only the data are writable, and
// there are no capabilities. The container uses the network of the process that starts it.
func restrict(t *testing.T, file, data string) {
	t.Helper()
	text := must.Value(os.ReadFile(file))(t)
	var spec map[string]any
	must.Succeed(t, json.Unmarshal(text, &spec))
	process, linux := spec["process"].(map[string]any), spec["linux"].(map[string]any)
	process["terminal"], process["noNewPrivileges"], process["capabilities"] = false, true, map[string]any{}
	spec["root"].(map[string]any)["readonly"] = true
	linux["namespaces"] = slices.DeleteFunc(linux["namespaces"].([]any), func(n any) bool { return n.(map[string]any)["type"] == "network" })
	delete(linux, "resources")
	var mounts []any
	for _, m := range spec["mounts"].([]any) {
		if at := m.(map[string]any)["destination"]; at != "/sys/fs/cgroup" && at != "/sys" && at != "/var/lib/perch" {
			mounts = append(mounts, m)
		}
	}
	spec["mounts"] = append(mounts, map[string]any{"destination": "/var/lib/perch", "type": "bind", "source": data,
		"options": []string{"rbind", "rw", "nosuid", "nodev", "noexec"}})
	must.Succeed(t, os.WriteFile(file, must.Value(json.Marshal(spec))(t), 0o644))
}
