package homeassistant

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"perch/gateway/httpserver/httpservertest"
	"perch/must"
)

// mosquitto is a real broker of Debian's, with a user and a password.
type mosquitto struct {
	t        *testing.T
	port     int
	dir      string
	tls      bool
	process  *exec.Cmd
	settings string
}

const user, password = "perch", "canary-p4ssword"

// freePort is one at which nothing listens. It is below those that the system gives to
// whoever asks for any, so that nobody has it by the time that a test uses it.
func freePort(t *testing.T) int {
	for range 1000 {
		port := 20_000 + rand.IntN(12_000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			must.Succeed(t, l.Close())
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// needMosquitto leaves a test out where the broker and its clients are not
// installed, as CI does.
func needMosquitto(t *testing.T) {
	t.Helper()
	_, broker := exec.LookPath("mosquitto")
	if _, err := os.Stat("/usr/sbin/mosquitto"); err == nil {
		broker = nil
	}
	if _, err := exec.LookPath("mosquitto_sub"); err != nil || broker != nil {
		t.Skip("mosquitto or mosquitto-clients is not installed")
	}
}

// newMosquitto has a broker of its own for a test that mostly waits, and runs
// beside others.
func newMosquitto(t *testing.T, settings ...string) *mosquitto {
	t.Helper()
	t.Parallel()
	return newMosquittoAlone(t, settings...)
}

// newMosquittoAlone is for a test that leaves others little of the machine.
func newMosquittoAlone(t *testing.T, settings ...string) *mosquitto {
	t.Helper()
	needMosquitto(t)
	b := &mosquitto{t: t, port: freePort(t), dir: t.TempDir(), settings: strings.Join(settings, "\n")}
	b.must("mosquitto_passwd", "-b", "-c", filepath.Join(b.dir, "users"), user, password)
	t.Cleanup(b.stop)
	return b
}

func (b *mosquitto) must(name string, a ...string) {
	b.t.Helper()
	if out, err := exec.Command(name, a...).CombinedOutput(); err != nil {
		b.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// start runs the broker until stop.
func (b *mosquitto) start() *mosquitto {
	b.t.Helper()
	lines := []string{
		"user root", "allow_anonymous false", "password_file " + filepath.Join(b.dir, "users"),
		fmt.Sprintf("listener %d 127.0.0.1", b.port), b.settings,
	}
	if b.tls {
		lines = append(lines, "cafile "+b.file("cert.pem"), "certfile "+b.file("cert.pem"), "keyfile "+b.file("key.pem"))
	}
	conf := b.file("mosquitto.conf")
	must.Succeed(b.t, os.WriteFile(conf, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	path := "mosquitto"
	if _, err := exec.LookPath(path); err != nil {
		path = "/usr/sbin/mosquitto"
	}
	b.process = exec.Command(path, "-c", conf)
	b.process.Dir = b.dir
	must.Succeed(b.t, b.process.Start())
	for range 200 {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", b.port))
		if err == nil {
			conn.Close()
			return b
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.t.Fatal("mosquitto does not listen")
	return nil
}

func (b *mosquitto) file(name string) string { return filepath.Join(b.dir, name) }

func (b *mosquitto) stop() {
	if b.process == nil {
		return
	}
	_ = b.process.Process.Signal(syscall.SIGCONT)
	_ = b.process.Process.Signal(syscall.SIGTERM)
	_ = b.process.Wait()
	b.process = nil
}

func (b *mosquitto) url() string {
	if b.tls {
		return fmt.Sprintf("mqtts://127.0.0.1:%d", b.port)
	}
	return fmt.Sprintf("mqtt://127.0.0.1:%d", b.port)
}

func (b *mosquitto) client(a ...string) []string {
	all := []string{"-h", "127.0.0.1", "-p", fmt.Sprint(b.port), "-u", user, "-P", password}
	if b.tls {
		all = append(all, "--cafile", b.file("cert.pem"))
	}
	return append(all, a...)
}

// publish has mosquitto_pub send something.
func (b *mosquitto) publish(topic, payload string, more ...string) {
	b.t.Helper()
	from := "-s"
	if payload == "" {
		from = "-n"
	}
	cmd := exec.Command("mosquitto_pub", b.client(append([]string{"-q", "1", "-t", topic, from}, more...)...)...)
	cmd.Stdin = strings.NewReader(payload)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("mosquitto_pub %s: %v\n%s", topic, err, out)
	}
}

// received is a message as mosquitto_sub shows it.
type received struct {
	Topic, Payload string
	Retained       bool
}

// subscriber is a mosquitto_sub.
type subscriber struct {
	t    *testing.T
	news chan struct{}

	mu  sync.Mutex
	all []received
}

// listen runs mosquitto_sub until the test ends, and returns once it has
// subscribed.
func (b *mosquitto) listen(filters ...string) *subscriber {
	b.t.Helper()
	a := []string{"-q", "1", "-F", "%r %t %p", "-d"}
	for _, f := range filters {
		a = append(a, "-t", f)
	}
	// Its word that it has subscribed would wait in a buffer.
	cmd := exec.Command("stdbuf", append([]string{"-oL", "mosquitto_sub"}, b.client(a...)...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Succeed(b.t, err)
	e := &subscriber{t: b.t, news: make(chan struct{}, 1)}
	subscribed, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		e.read(out, sync.OnceFunc(func() { close(subscribed) }))
	}()
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
	})
	select {
	case <-subscribed:
	case <-time.After(time.Minute):
		b.t.Fatal("mosquitto_sub has not subscribed")
	}
	return e
}

func (e *subscriber) read(from io.Reader, subscribed func()) {
	s := bufio.NewScanner(from)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		line := s.Text()
		if strings.HasPrefix(line, "Subscribed (") {
			subscribed()
		}
		if !strings.HasPrefix(line, "0 ") && !strings.HasPrefix(line, "1 ") {
			continue // about itself
		}
		topic, payload, _ := strings.Cut(line[2:], " ")
		e.mu.Lock()
		e.all = append(e.all, received{topic, payload, line[0] == '1'})
		e.mu.Unlock()
		select {
		case e.news <- struct{}{}:
		default:
		}
	}
}

// on are the payloads received so far under a topic.
func (e *subscriber) on(topic string) (payloads []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.all {
		if h.Topic == topic {
			payloads = append(payloads, h.Payload)
		}
	}
	return payloads
}

// await waits for a wanted message under a topic.
func (e *subscriber) await(topic string, want func(string) bool) string {
	e.t.Helper()
	late := time.After(time.Minute)
	for from := 0; ; {
		all := e.on(topic)
		for ; from < len(all); from++ {
			if want(all[from]) {
				return all[from]
			}
		}
		select {
		case <-e.news:
		case <-late:
			e.t.Fatalf("nothing such under %s; heard was\n%s", topic, strings.Join(all, "\n"))
		}
	}
}

func equals(want string) func(string) bool { return func(got string) bool { return got == want } }

func has(parts ...string) func(string) bool {
	return func(got string) bool {
		for _, p := range parts {
			if !strings.Contains(got, p) {
				return false
			}
		}
		return true
	}
}

// forget drops what was received so far.
func (e *subscriber) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = nil
}

// secure gives the broker a certificate that is its own authority, and returns it.
func (b *mosquitto) secure() (authority []byte) {
	b.t.Helper()
	path, _ := httpservertest.Certificate(b.t, b.dir, "localhost", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	b.tls = true
	return must.Value(os.ReadFile(path))(b.t)
}
