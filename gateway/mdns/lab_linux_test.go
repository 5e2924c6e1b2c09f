package mdns

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"perch/must"
)

// asVariable is the environment variable that tells this test binary which program it is inside a network namespace (see
// runAs). The network tests use two namespaces that a virtual cable connects: "server", with the appliance, and "client",
// with the programs that look for it. Only a thread can enter a namespace, so the test binary starts itself again in one.
const asVariable = "PERCH_MDNS_TEST_AS"

const (
	serverAddr = "10.77.0.1"
	clientAddr = "10.77.0.2"
	serverV6   = "fd00:77::1"
	python     = "/usr/bin/python3" // Debian's python3, which has python3-zeroconf; another one on PATH may not have it
	patience   = 40 * time.Second
)

func TestMain(m *testing.M) {
	if as := os.Getenv(asVariable); as != "" {
		os.Exit(runAs(as))
	}
	os.Exit(m.Run())
}

type lab struct {
	t              *testing.T
	server, client string
}

var labs atomic.Int32 // numbers the namespaces of parallel tests

// newLab makes the two namespaces, or skips the test if that is not permitted. The interfaces have only the IPv6 addresses
// that a test adds.
func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	id := fmt.Sprintf("perch-%d-%d", os.Getpid(), labs.Add(1))
	l := &lab{t, id + "-server", id + "-client"}
	for _, ns := range []string{l.server, l.client} {
		if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
			t.Skipf("needs network namespaces, and iproute2 to make them: %v: %s", err, bytes.TrimSpace(out))
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		// To enter a namespace, ip remounts /sys. That needs more rights than to make one, and a / that is a mount point.
		if out, err := exec.Command("ip", "-n", ns, "link", "show", "lo").CombinedOutput(); err != nil {
			t.Skipf("needs network namespaces that can be entered: %v: %s", err, bytes.TrimSpace(out))
		}
	}
	l.ip("", "link add eth0 netns "+l.server+" type veth peer name eth0 netns "+l.client)
	for _, ns := range []string{l.server, l.client} {
		l.ip(ns, "link set eth0 addrgenmode none")
		l.ip(ns, "link set eth0 up")
	}
	l.ip(l.server, "addr add "+serverAddr+"/24 dev eth0")
	l.ip(l.client, "addr add "+clientAddr+"/24 dev eth0")
	return l
}

// ip runs the command ip of iproute2, in the namespace ns unless ns is empty.
func (l *lab) ip(ns, args string) {
	l.t.Helper()
	words := strings.Fields(args)
	if ns != "" {
		words = append([]string{"-n", ns}, words...)
	}
	if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
		l.t.Fatalf("ip %s: %v: %s", strings.Join(words, " "), err, out)
	}
}

// process is a program in a namespace that writes lines, each with a JSON object.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan map[string]any
	ended chan struct{}
}

func (l *lab) start(ns string, env []string, args ...string) *process {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", ns}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must.Succeed(l.t, err)
	must.Succeed(l.t, cmd.Start())
	p := &process{l.t, cmd, make(chan map[string]any, 1000), make(chan struct{})}
	go func() {
		defer close(p.ended)
		defer close(p.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			line := map[string]any{}
			if json.Unmarshal(in.Bytes(), &line) == nil {
				p.lines <- line
			}
		}
	}()
	l.t.Cleanup(func() { cancel(); <-p.ended; _ = cmd.Wait() })
	return p
}

// await returns the first line in which key has this value.
func (p *process) await(key, value string) map[string]any {
	p.t.Helper()
	late := time.After(patience)
	var last map[string]any
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("%v ended without saying %s=%s; its last words: %v", p.cmd.Args, key, value, last)
			}
			last = line
			if line[key] == value {
				return line
			}
		case <-late:
			p.t.Fatalf("%v did not say %s=%s; its last words: %v", p.cmd.Args, key, value, last)
		}
	}
}

// stop ends the process with SIGTERM, as systemd does, and returns its exit code.
func (p *process) stop() int {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.wait()
}

func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(2 * patience):
		p.t.Fatalf("%v does not end", p.cmd.Args)
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

func (l *lab) python(ns, script string, args ...string) *process {
	l.t.Helper()
	if script != "ask.py" {
		if err := exec.Command(python, "-c", "import zeroconf").Run(); err != nil {
			l.t.Skipf("needs Debian's python3-zeroconf: %v", err)
		}
	}
	return l.start(ns, nil, append([]string{python, "testdata/" + script}, args...)...)
}

// self runs this test binary in a namespace.
func (l *lab) self(ns, as string, args ...string) *process {
	l.t.Helper()
	return l.start(ns, []string{asVariable + "=" + as}, append([]string{os.Args[0]}, args...)...)
}

// output runs a command in a namespace and returns what it printed.
func (l *lab) output(ns string, args ...string) string {
	l.t.Helper()
	out, err := exec.Command("ip", append([]string{"netns", "exec", ns}, args...)...).Output()
	if err != nil {
		l.t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}
