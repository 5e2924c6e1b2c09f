package homeassistant

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
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

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/waittest"
)

// mosquitto is a running Mosquitto broker with a user and a password.
type mosquitto struct {
	t        *testing.T
	port     int
	dir      string
	tls      bool
	process  *exec.Cmd
	settings string
}

const user, password = "perch", "canary-p4ssword"

// freePort returns a TCP port on which nothing listens. The port is below the range of ephemeral ports, so that no other
// program gets it before the test uses it.
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

// needMosquitto returns the path of the broker, or skips a test if it is not installed.
func needMosquitto(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"mosquitto", "/usr/sbin/mosquitto"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("mosquitto is not installed")
	return ""
}

// newMosquitto returns a broker for a test that mostly waits. The test runs in parallel with others.
func newMosquitto(t *testing.T, settings ...string) *mosquitto {
	t.Helper()
	t.Parallel()
	return newMosquittoAlone(t, settings...)
}

// newMosquittoAlone is like newMosquitto for a test that uses much of the machine's time, and does not run in parallel.
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

// start runs the broker until stop is called or the test ends.
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
	b.process = exec.Command(needMosquitto(b.t), "-c", conf)
	b.process.Dir = b.dir
	must.Succeed(b.t, b.process.Start())
	waittest.For(b.t, "mosquitto listens", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", b.port))
		return err == nil && conn.Close() == nil
	})
	return b
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

// connect connects a new client to the broker.
func (b *mosquitto) connect() mqtt.Client {
	b.t.Helper()
	o := mqtt.NewClientOptions().AddBroker(b.url()).SetClientID(fmt.Sprint("test", rand.Uint64())).SetUsername(user).SetPassword(password).
		SetAutoReconnect(false)
	if b.tls {
		authority := x509.NewCertPool()
		authority.AppendCertsFromPEM(must.Value(os.ReadFile(b.file("cert.pem")))(b.t))
		o.SetTLSConfig(&tls.Config{RootCAs: authority})
	}
	c := mqtt.NewClient(o)
	b.done(c.Connect())
	return c
}

func (b *mosquitto) done(t mqtt.Token) {
	b.t.Helper()
	if !t.WaitTimeout(time.Minute) || t.Error() != nil {
		b.t.Fatalf("the broker does not answer: %v", t.Error())
	}
}

func (b *mosquitto) publish(topic, payload string) { b.send(topic, payload, false) }

func (b *mosquitto) retain(topic, payload string) { b.send(topic, payload, true) }

func (b *mosquitto) send(topic, payload string, retained bool) {
	b.t.Helper()
	c := b.connect()
	b.done(c.Publish(topic, 1, retained, payload))
	c.Disconnect(100)
}

// subscriber records the messages that it receives.
type subscriber struct {
	t    *testing.T
	news chan struct{}

	mu  sync.Mutex
	all []mqtt.Message
}

// listen returns a subscriber that receives messages until the test ends.
func (b *mosquitto) listen(filters ...string) *subscriber {
	b.t.Helper()
	e, wanted := &subscriber{t: b.t, news: make(chan struct{}, 1)}, map[string]byte{}
	for _, f := range filters {
		wanted[f] = 1
	}
	c := b.connect()
	b.t.Cleanup(func() { c.Disconnect(100) })
	b.done(c.SubscribeMultiple(wanted, func(_ mqtt.Client, m mqtt.Message) {
		e.mu.Lock()
		e.all = append(e.all, m)
		e.mu.Unlock()
		select {
		case e.news <- struct{}{}:
		default:
		}
	}))
	return e
}

// on returns the payloads received so far on a topic.
func (e *subscriber) on(topic string) (payloads []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.all {
		if m.Topic() == topic {
			payloads = append(payloads, string(m.Payload()))
		}
	}
	return payloads
}

// await waits until a payload received on a topic satisfies want, and returns that payload.
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

// forget deletes the messages received so far.
func (e *subscriber) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = nil
}

// secure makes the broker use TLS with a self-signed certificate, and returns the certificate.
func (b *mosquitto) secure() (authority []byte) {
	b.t.Helper()
	path, _ := httpservertest.Certificate(b.t, b.dir, "localhost", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	b.tls = true
	return must.Value(os.ReadFile(path))(b.t)
}
