package appliancetest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/must"
	"perch/waittest"
)

// Topics of the robot with the default MAC address, A0:B1:C2:D3:E4:F5.
const (
	RobotTopic  = "perch/a0b1c2d3e4f5/"
	RobotConfig = "homeassistant/device/perch_a0b1c2d3e4f5/config"
)

// needMosquitto returns the path of the broker mosquitto. It skips the test if the broker or its clients
// are not installed. CI installs them.
func needMosquitto(t *testing.T) (broker string) {
	t.Helper()
	broker, err := exec.LookPath("mosquitto")
	if err != nil { // most users do not have sbin in PATH
		broker, err = exec.LookPath("/usr/sbin/mosquitto")
	}
	if _, subErr := exec.LookPath("mosquitto_sub"); err != nil || subErr != nil {
		t.Skip("mosquitto is not installed: apt install mosquitto mosquitto-clients")
	}
	return broker
}

// Listener collects the lines that an appliance publishes. They are "topic payload" for MQTT, or the lines
// of server-sent events.
type Listener struct {
	reading sync.WaitGroup
	mu      sync.Mutex
	all     []string
}

// read collects lines in a goroutine until from ends.
func (l *Listener) read(from io.Reader) {
	l.reading.Go(func() {
		for s := bufio.NewScanner(from); s.Scan(); {
			l.mu.Lock()
			l.all = append(l.all, s.Text())
			l.mu.Unlock()
		}
	})
}

// MosquittoFlags returns the flags with which mosquitto's clients connect to the appliance's broker.
func (h *Appliance) MosquittoFlags() []string {
	host, port, err := net.SplitHostPort(strings.TrimPrefix(h.Config().MQTT.Listen, "mqtt://"))
	must.Succeed(h.T, err)
	flags := []string{"-h", host, "-p", port}
	if h.Config().MQTT.Broker == config.EmbeddedBroker {
		flags = append(flags, "-u", config.MQTTUser, "-P", h.Secret(datadir.MQTTPasswordFile))
	}
	return flags
}

// Listen subscribes to all topics of the appliance's broker. It returns once it has received the appliance's
// retained status.
func (h *Appliance) Listen() *Listener {
	h.T.Helper()
	h.Eventually("the appliance is connected to the broker", func() bool { return h.Mirror.Status().Connected })
	l := Subscribe(h.T, h.MosquittoFlags()...)
	h.Eventually("mosquitto_sub receives retained messages", func() bool { return slices.Contains(l.Lines(), "perch/bridge/status online") })
	return l
}

// WithBroker returns a configuration with the embedded broker.
func WithBroker(t *testing.T) config.Config {
	t.Helper()
	needMosquitto(t)
	c := Config()
	c.MQTT.Broker, c.MQTT.Listen = config.EmbeddedBroker, FreeAddress(t)
	return c
}

// StartWithBroker runs an appliance with the embedded broker, an adopted robot and a Listener.
func StartWithBroker(t *testing.T) (*Appliance, *Listener) {
	t.Helper()
	h := Start(t, WithBroker(t), t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	return h, h.Listen()
}

// Subscribe runs mosquitto_sub for all topics until the test ends. flags say how to connect to the broker.
func Subscribe(t *testing.T, flags ...string) *Listener {
	t.Helper()
	l := &Listener{}
	c := exec.Command("mosquitto_sub", append(flags, "-v", "-t", "#")...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	must.Succeed(t, err)
	l.read(out)
	t.Cleanup(func() {
		_ = c.Process.Kill()
		l.reading.Wait()
		_ = c.Wait() // returns an error because the process was killed
	})
	return l
}

// StartMosquitto runs the broker mosquitto on a free loopback address. Clients need no password.
func StartMosquitto(t *testing.T) (process *os.Process, address string) {
	t.Helper()
	address = FreeAddress(t)
	return StartMosquittoAt(t, address), address
}

// StartMosquittoAt runs the broker mosquitto on a loopback address.
func StartMosquittoAt(t *testing.T, address string) *os.Process {
	t.Helper()
	_, port, _ := net.SplitHostPort(address)
	c := ChildCommand(needMosquitto(t), "-p", port)
	ended := make(chan struct{})
	must.Succeed(t, RunChild(c, func() {
		_ = c.Wait() // returns an error because the process is killed
		close(ended)
	}))
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	waittest.For(t, "mosquitto listens", func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	})
	return c.Process
}

// Lines returns the lines so far.
func (l *Listener) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// AgentStates returns the states of the agent in the messages of the topic RobotTopic+"state". It leaves out
// a state that is the same as the one before.
func (l *Listener) AgentStates() (states []string) {
	for _, line := range l.Lines() {
		payload, found := strings.CutPrefix(line, RobotTopic+"state ")
		var document struct {
			AgentState string `json:"agent_state"`
		}
		if !found || json.Unmarshal([]byte(payload), &document) != nil {
			continue
		}
		states = append(states, document.AgentState)
	}
	return slices.Compact(states)
}

// Has reports whether some message of a topic contains all parts.
func (l *Listener) Has(topic string, parts ...string) bool {
	return slices.ContainsFunc(l.Lines(), func(line string) bool {
		return strings.HasPrefix(line, topic+" ") && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) })
	})
}

// Mentions reports whether some line contains all parts.
func (l *Listener) Mentions(parts ...string) bool {
	return slices.ContainsFunc(l.Lines(), func(line string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) })
	})
}

// Publish publishes a message with mosquitto_pub.
func (h *Appliance) Publish(topic, payload string) {
	h.T.Helper()
	if out, err := exec.Command("mosquitto_pub", append(h.MosquittoFlags(), "-q", "1", "-t", topic, "-m", payload)...).CombinedOutput(); err != nil {
		h.T.Fatalf("mosquitto_pub: %v %s", err, out)
	}
}

// ReadEvents reads server-sent events until the test ends. header alternates names and values.
func (h *Appliance) ReadEvents(path string, header ...string) *Listener {
	h.T.Helper()
	ctx, cancel := context.WithCancel(h.T.Context())
	r := must.Value(http.NewRequestWithContext(ctx, http.MethodGet, h.URL(path), nil))(h.T)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		h.T.Fatalf("%v %v", response, err)
	}
	l := &Listener{}
	l.read(response.Body)
	h.T.Cleanup(func() { cancel(); l.reading.Wait(); response.Body.Close() })
	return l
}
