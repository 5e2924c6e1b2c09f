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

// Topics of the robot that is simulated unless another is named.
const (
	RobotTopic  = "perch/a0b1c2d3e4f5/"
	RobotConfig = "homeassistant/device/perch_a0b1c2d3e4f5/config"
)

// needMosquitto returns the path of the broker. It skips a test if the broker or its clients are not
// installed; CI installs them.
func needMosquitto(t *testing.T) (broker string) {
	t.Helper()
	broker, err := exec.LookPath("mosquitto")
	if err != nil { // sbin is not in the path of most users
		broker, err = exec.LookPath("/usr/sbin/mosquitto")
	}
	if _, none := exec.LookPath("mosquitto_sub"); err != nil || none != nil {
		t.Skip("mosquitto is not installed: apt install mosquitto mosquitto-clients")
	}
	return broker
}

// Listener collects the lines that an appliance publishes: "topic payload" of mosquitto_sub, or the
// lines of server-sent events.
type Listener struct {
	reading sync.WaitGroup
	mu      sync.Mutex
	all     []string
}

func (l *Listener) read(from io.Reader) {
	l.reading.Go(func() {
		for s := bufio.NewScanner(from); s.Scan(); {
			l.mu.Lock()
			l.all = append(l.all, s.Text())
			l.mu.Unlock()
		}
	})
}

// Mosquitto returns the flags with which mosquitto's clients connect to the appliance's broker.
func (h *Appliance) Mosquitto() []string {
	host, port, err := net.SplitHostPort(strings.TrimPrefix(h.Config().MQTT.Listen, "mqtt://"))
	must.Succeed(h.T, err)
	a := []string{"-h", host, "-p", port}
	if h.Config().MQTT.Broker == config.EmbeddedBroker {
		a = append(a, "-u", config.MQTTUser, "-P", h.Secret(datadir.MQTTPasswordFile))
	}
	return a
}

// Listen subscribes to all topics of the appliance's broker. It returns once retained messages have
// arrived.
func (h *Appliance) Listen() *Listener {
	h.T.Helper()
	h.Eventually("the broker is here", func() bool { return h.Mirror.Status().Connected })
	l := Subscribe(h.T, h.Mosquitto()...)
	h.Eventually("mosquitto_sub is told what is retained", func() bool { return slices.Contains(l.Lines(), "perch/bridge/status online") })
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

// Subscribe runs mosquitto_sub for all topics of a broker until the test ends.
func Subscribe(t *testing.T, broker ...string) *Listener {
	t.Helper()
	l := &Listener{}
	c := exec.Command("mosquitto_sub", append(broker, "-v", "-t", "#")...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	must.Succeed(t, err)
	l.read(out)
	t.Cleanup(func() {
		_ = c.Process.Kill()
		l.reading.Wait()
		_ = c.Wait() // it was killed
	})
	return l
}

// StartMosquitto runs Debian's broker, which serves all programs of this machine.
func StartMosquitto(t *testing.T) (process *os.Process, address string) {
	t.Helper()
	address = FreeAddress(t)
	return StartMosquittoAt(t, address), address
}

// StartMosquittoAt runs the broker at an address of this machine.
func StartMosquittoAt(t *testing.T, address string) *os.Process {
	t.Helper()
	_, port, _ := net.SplitHostPort(address)
	c := Child(needMosquitto(t), "-p", port)
	must.Succeed(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	})
	waittest.For(t, "mosquitto listens", func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	})
	return c.Process
}

// Lines returns all lines so far.
func (l *Listener) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// AgentStates returns the states of the agent in the robot's documents, without repetitions.
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

// Has reports whether a message of a topic contains all parts.
func (l *Listener) Has(topic string, parts ...string) bool {
	return slices.ContainsFunc(l.Lines(), func(line string) bool {
		return strings.HasPrefix(line, topic+" ") && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) })
	})
}

// Mentions reports whether a line contains all parts.
func (l *Listener) Mentions(parts ...string) bool {
	return slices.ContainsFunc(l.Lines(), func(line string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) })
	})
}

// Publish publishes a message with mosquitto_pub.
func (h *Appliance) Publish(topic, payload string) {
	h.T.Helper()
	if out, err := exec.Command("mosquitto_pub", append(h.Mosquitto(), "-q", "1", "-t", topic, "-m", payload)...).CombinedOutput(); err != nil {
		h.T.Fatalf("mosquitto_pub: %v %s", err, out)
	}
}

// Feed reads server-sent events until the test ends.
func (h *Appliance) Feed(path string, header ...string) *Listener {
	h.T.Helper()
	ctx, cancel := context.WithCancel(h.T.Context())
	r := must.Value(http.NewRequestWithContext(ctx, http.MethodGet, h.URL(path), nil))(h.T)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		h.T.Fatalf("%v %v", answer, err)
	}
	l := &Listener{}
	l.read(answer.Body)
	h.T.Cleanup(func() { cancel(); l.reading.Wait(); answer.Body.Close() })
	return l
}
