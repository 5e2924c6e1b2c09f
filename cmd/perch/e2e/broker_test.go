package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"perch/agent/notice"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/firmware-tools/simrobot"
	"perch/gateway/broker"
	"perch/gateway/owner/admin"
	"perch/gateway/robot"
	"perch/must"
	"perch/store"
	"perch/store/archive"
	"perch/store/archive/archivetest"
	"perch/store/storetest"
	"perch/waittest"
)

// brokerOf returns the process ID of the embedded broker that a process has started, or 0 if there is none.
func brokerOf(t testing.TB, parent int) int {
	t.Helper()
	for _, child := range appliancetest.ChildProcesses(t, parent) {
		line, _ := os.ReadFile("/proc/" + child + "/cmdline") // empty if the process has ended
		if pid, err := strconv.Atoi(child); err == nil && bytes.HasSuffix(line, []byte("\x00"+broker.Command+"\x00")) {
			return pid
		}
	}
	return 0
}

// mqttPacket returns an MQTT packet. kind is its first byte.
func mqttPacket(kind byte, body []byte) []byte {
	head := []byte{kind}
	for n := len(body); ; n >>= 7 {
		if n < 0x80 {
			return append(append(head, byte(n)), body...)
		}
		head = append(head, byte(n)|0x80)
	}
}

// mqttLogin connects to a broker, and returns the connection when the broker has accepted the CONNECT. version is 4
// for MQTT 3.1.1 or 5 for MQTT 5.
func mqttLogin(address string, version byte, id, user, password string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	field := func(s string) []byte { return append([]byte{0, byte(len(s))}, s...) }
	flags, login := byte(0x02), field(id)
	if user != "" {
		flags, login = 0xc2, slices.Concat(login, field(user), field(password))
	}
	body := append(field("MQTT"), version, flags, 0, 60)
	if version == 5 {
		body = append(body, 0) // no properties
	}
	body = append(body, login...)
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, err = conn.Write(mqttPacket(0x10, body))
	answer := make([]byte, 2)
	if err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if err == nil {
		rest := make([]byte, answer[1])
		if _, err = io.ReadFull(conn, rest); err == nil && rest[1] != 0 {
			err = fmt.Errorf("refused: %d", rest[1])
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// brokerPassword returns the generated password of the embedded broker.
func brokerPassword(t *testing.T, data string) string {
	t.Helper()
	return strings.TrimSpace(string(archivetest.Read(t, filepath.Join(data, datadir.MQTTPasswordFile))))
}

// eightBytes is a SUBSCRIBE packet of MQTT 5 without its options. The library of the embedded broker panics on
// this packet.
var eightBytes = []byte{0x82, 0x06, 0x00, 0x01, 0x00, 0x00, 0x01, 0x61}

// TestTheBrokerDiesAndTheTalkGoesOn: neither a malformed packet nor the end of the broker's process disturbs a
// robot's talk. The port stays open, the broker is started again with all retained messages, and its end is
// reported once. The test must not run in parallel with others, because brokerOf would find their brokers.
func TestTheBrokerDiesAndTheTalkGoesOn(t *testing.T) {
	h, l := appliancetest.StartWithBroker(t)
	conn := must.Value(mqttLogin(h.Config().MQTT.Listen, 5, "stranger", config.MQTTUser, h.Secret(datadir.MQTTPasswordFile)))(t)
	defer conn.Close()
	var talk sync.WaitGroup
	talk.Go(func() {
		h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "tell me a joke")}).CheckComplete(t)
	})
	h.Eventually("the robot is spoken to", func() bool { return slices.Contains(l.AgentStates(), "speaking") })
	must.Value(conn.Write(eightBytes))(t)
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("whoever has sent that is still inside")
	}
	h.Eventually("there is a broker", func() bool { return brokerOf(t, os.Getpid()) != 0 && h.Mirror.Status().Connected })
	first := brokerOf(t, os.Getpid())
	ends := h.Mirror.Status().EndCount
	must.Succeed(t, syscall.Kill(first, syscall.SIGKILL))
	told := func(ok bool, word string) func() bool {
		return func() bool {
			var status admin.Status
			h.Admin("GET", "/api/v1/status", "{}", &status)
			return slices.ContainsFunc(status.Parts, func(p admin.Part) bool {
				return p.Name == "mqtt" && p.OK == ok && strings.Contains(p.Note, word)
			})
		}
	}
	h.Eventually("it is told that it has ended", told(false, "has ended"))
	if _, err := mqttLogin(h.Config().MQTT.Listen, 4, "early", config.MQTTUser, h.Secret(datadir.MQTTPasswordFile)); err != nil {
		t.Errorf("whoever comes before it is there again does not wait at the port: %v", err)
	}
	h.Eventually("it is told that it is back", told(true, fmt.Sprintf("has ended %d times", ends+1)))
	if second := brokerOf(t, os.Getpid()); second == first || second == 0 {
		t.Errorf("the process is %d, after %d", second, first)
	}
	again := appliancetest.Subscribe(t, h.MosquittoFlags()...)
	h.Eventually("all that was retained is there", func() bool {
		return again.Has("perch/bridge/status", "online") && again.Has("homeassistant/device/perch_bridge/config", "perch") &&
			again.Has(appliancetest.RobotConfig, "agent_state") && again.Has(appliancetest.RobotTopic+"state", "agent_state") &&
			again.Has(appliancetest.RobotTopic+"status", "online")
	})
	talk.Wait()
	if n := strings.Count(h.Logged.String(), "has ended and is started again"); n != ends+1 {
		t.Errorf("its end is logged %d times, and it has ended %d times:\n%s", n, ends+1, h.Logged)
	}
	h.Expect(200, "", "GET", "/ready", "")
}

// TestTheBrokerDiesWithItsParent: the broker ends when its parent is killed. It has no secrets of its parent in its
// environment and arguments, and limited rights.
func TestTheBrokerDiesWithItsParent(t *testing.T) {
	data, at := t.TempDir(), appliancetest.FreeAddress(t)
	p := program(t, data, "PERCH_MQTT_BROKER="+config.EmbeddedBroker, "PERCH_MQTT_LISTEN="+at, "PERCH_MDNS_ENABLED=false", "SECRET_OF_OURS=x")
	child := 0
	waittest.For(t, "the broker runs", func() bool {
		child = brokerOf(t, p.cmd.Process.Pid)
		return child != 0
	})
	if conn, err := mqttLogin(at, 4, "a", config.MQTTUser, brokerPassword(t, data)); err != nil {
		t.Error(err)
	} else {
		conn.Close()
	}
	of := func(name string) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", child, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if env := of("environ"); strings.Contains(env, "SECRET") || strings.Contains(env, "PERCH_") {
		t.Errorf("its environment is %q", env)
	}
	if args := of("cmdline"); strings.Contains(args, brokerPassword(t, data)) {
		t.Errorf("its arguments are %q", args)
	}
	if status := of("status"); !strings.Contains(status, "NoNewPrivs:\t1") {
		t.Errorf("it can gain privileges:\n%s", status)
	}
	if score := of("oom_score_adj"); score != fmt.Sprintln(broker.OOMScore) {
		t.Errorf("when memory is short it is %s", score)
	}
	if limits := of("limits"); !strings.Contains(limits, "Max file size             0") || strings.Contains(limits, "Max data size             unlimited") {
		t.Errorf("its limits are\n%s", limits)
	}
	p.cut()
	waittest.For(t, "the broker has gone too", func() bool { return syscall.Kill(child, 0) != nil })
}

// published publishes sentences with QoS 1, one after the other, until the broker ends, and returns the confirmed
// ones. payload returns the payload for a sentence. count counts the confirmed sentences.
func published(address, password, topic string, round int, payload func(text string) string, count *atomic.Int64) (confirmed []string) {
	client := fmt.Sprintf("publisher-%d-%s", round, topic)
	conn, err := mqttLogin(address, 4, client, config.MQTTUser, password)
	for try := 0; err != nil && try < 300; try++ { // the broker's process starts before its port is open
		time.Sleep(20 * time.Millisecond)
		conn, err = mqttLogin(address, 4, client, config.MQTTUser, password)
	}
	if err != nil {
		return nil
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{})
	for n := uint16(1); ; n++ {
		text := fmt.Sprintf("sentence %d of round %d", n, round)
		body := slices.Concat([]byte{0, byte(len(topic))}, []byte(topic), []byte{byte(n >> 8), byte(n)}, []byte(payload(text)))
		if _, err := conn.Write(mqttPacket(0x32, body)); err != nil {
			return confirmed
		}
		answer := make([]byte, 4)
		if _, err := io.ReadFull(conn, answer); err != nil || !bytes.Equal(answer, []byte{0x40, 2, byte(n >> 8), byte(n)}) {
			return confirmed
		}
		confirmed = append(confirmed, text)
		count.Add(1)
	}
}

// TestConfirmedOverMQTTIsKept: sentences and notifications for a robot with a closed channel that the broker has
// confirmed to the publisher are not lost in a power failure. PERCH_KILLS is the number of power failures.
func TestConfirmedOverMQTTIsKept(t *testing.T) {
	t.Parallel()
	kills := int(storetest.Number(t, "PERCH_KILLS", 4))
	data := t.TempDir()
	robots := []string{"a0b1c2000401", "a0b1c2000402", "a0b1c2000403"}
	const notified = "a0b1c2000404"
	knownTo(t, data, append(robots, notified))
	total, notices := 0, 0
	for round := range kills {
		at := appliancetest.FreeAddress(t)
		p := program(t, data, "PERCH_MQTT_BROKER="+config.EmbeddedBroker, "PERCH_MQTT_LISTEN="+at, "PERCH_MDNS_ENABLED=false",
			"PERCH_SPEECH_RECOGNIZERS_0_KIND=wyoming", "PERCH_SPEECH_RECOGNIZERS_0_URL=tcp://127.0.0.1:9",
			"PERCH_SPEECH_SYNTHESIZERS_0_KIND=wyoming", "PERCH_SPEECH_SYNTHESIZERS_0_URL=tcp://127.0.0.1:9")
		waittest.For(t, "the broker runs", func() bool { return brokerOf(t, p.cmd.Process.Pid) != 0 })
		password := brokerPassword(t, data)
		confirmed := make([][]string, len(robots))
		var all sync.WaitGroup
		var some atomic.Int64
		for i, robot := range robots {
			all.Go(func() {
				confirmed[i] = published(at, password, "perch/"+robot+"/say/set", round, func(text string) string { return text }, &some)
			})
		}
		var accepted []string
		all.Go(func() {
			accepted = published(at, password, "perch/bridge/request/notify", round,
				func(text string) string { return fmt.Sprintf(`{"robot":%q,"text":%q}`, notified, text) }, &some)
		})
		waittest.For(t, "some are confirmed", func() bool { return some.Load() >= int64(1+round*5%31) })
		time.Sleep(time.Duration(round%7) * 7 * time.Millisecond) // the power fails at different moments
		p.cut()
		all.Wait()
		for i, robot := range robots {
			total += len(confirmed[i])
			missing(t, data, robot, confirmed[i])
		}
		notices += len(accepted)
		missingNotices(t, data, accepted)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d sentences and %d notifications were confirmed in %d rounds", total, notices, kills)
	if total < kills || notices < kills/2 {
		t.Errorf("only %d sentences and %d notifications were confirmed in %d rounds", total, notices, kills)
	}
}

// TestTheBridgeIsOfflineHoweverItEnds: the broker publishes that the bridge is offline after SIGTERM and after
// SIGKILL.
func TestTheBridgeIsOfflineHoweverItEnds(t *testing.T) {
	t.Parallel()
	_, address := appliancetest.StartMosquitto(t)
	host, port, _ := net.SplitHostPort(address)
	data := t.TempDir()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		l := appliancetest.Subscribe(t, "-h", host, "-p", port)
		last := func() string {
			var word string
			for _, line := range l.Lines() {
				if w, found := strings.CutPrefix(line, "perch/bridge/status "); found {
					word = w
				}
			}
			return word
		}
		p := program(t, data, "PERCH_MQTT_BROKER=mqtt://"+address)
		waittest.For(t, "the bridge is online", func() bool { return last() == "online" })
		if err := p.end(signal); (err == nil) != (signal == syscall.SIGTERM) {
			t.Errorf("after %v it ends with %v", signal, err)
		}
		waittest.For(t, "the bridge is offline", func() bool { return last() == "offline" })
	}
}

// knownTo adopts robots in a data directory.
func knownTo(t *testing.T, data string, robots []string) {
	t.Helper()
	h := open(t, appliancetest.Config(), data)
	h.Adopt(robots...)
	h.Stop()
}

// missing reports sentences that are not among the waiting commands of a robot. At most twenty commands wait, and
// the newest of them may be unconfirmed, so missing checks the last nineteen sentences.
func missing(t *testing.T, data, robotID string, sentences []string) {
	t.Helper()
	const waits = 19
	db := must.Value(store.Open(archive.DatabasePath(data), store.Options{}))(t)
	defer db.Close()
	list, _, err := store.NewTable[[]robot.Command](db, "waiting").Get(robotID)
	must.Succeed(t, err)
	for _, s := range sentences[max(0, len(sentences)-waits):] {
		if !slices.ContainsFunc(list, func(c robot.Command) bool { return c.Text == s }) {
			t.Errorf("%s: %q was confirmed, and is lost; %d wait", robotID, s, len(list))
		}
	}
}

// missingNotices reports texts of notifications that are not stored. The newest forty notifications of a robot are
// stored, and one of them may be unconfirmed, so missingNotices checks the last 39 texts.
func missingNotices(t *testing.T, data string, texts []string) {
	t.Helper()
	const waits = 39
	db := must.Value(store.Open(archive.DatabasePath(data), store.Options{}))(t)
	defer db.Close()
	there := map[string]bool{}
	for _, n := range store.NewTable[notice.Notification](db, "notifications").All() {
		there[n.Text] = true
	}
	for _, text := range texts[max(0, len(texts)-waits):] {
		if !there[text] {
			t.Errorf("the notification %q was confirmed, and is lost; %d are there", text, len(there))
		}
	}
}

// TestConfirmedOverAnotherBroker: an external broker delivers messages again that Perch had not confirmed when it
// was killed, and messages that were published while Perch did not run.
func TestConfirmedOverAnotherBroker(t *testing.T) {
	t.Parallel()
	_, address := appliancetest.StartMosquitto(t)
	host, port, _ := net.SplitHostPort(address)
	data, robotID := t.TempDir(), "a0b1c2000401"
	knownTo(t, data, []string{robotID})
	say := func(text string) {
		t.Helper()
		if out, err := exec.Command("mosquitto_pub", "-h", host, "-p", port, "-q", "1", "-t", "perch/"+robotID+"/say/set", "-m",
			text).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	l := appliancetest.Subscribe(t, "-h", host, "-p", port)
	queued := func() int {
		return strings.Count(strings.Join(l.Lines(), "\n"), "perch/"+robotID+`/conversation {"event_type":"queued"`)
	}
	var said []string
	for round := range 2 {
		began := queued()
		p := program(t, data, "PERCH_MQTT_BROKER=mqtt://"+address, "PERCH_MDNS_ENABLED=false")
		waittest.For(t, "what was said while it was away has come", func() bool { return queued() >= began+min(len(said), 1) })
		if round == 0 {
			waittest.For(t, "it takes commands", func() bool { say("are you there"); return queued() > 0 })
		}
		for n := range 3 { // the last ones are being processed when the power fails
			said = append(said, fmt.Sprintf("sentence %d of round %d", n, round))
			say(said[len(said)-1])
		}
		p.cut()
		said = append(said, fmt.Sprintf("while it was away after round %d", round))
		say(said[len(said)-1])
	}
	p := program(t, data, "PERCH_MQTT_BROKER=mqtt://"+address, "PERCH_MDNS_ENABLED=false")
	say("the end")
	say("\x07") // is rejected after the other commands, because a robot's commands are carried out in order
	waittest.For(t, "all have come", func() bool { return l.Has("perch/"+robotID+"/conversation", "command_rejected", "spoken") })
	p.stop()
	missing(t, data, robotID, append(said, "the end"))
}

// TestTheBrokersMemoryIsBounded: a client that publishes too many retained messages ends only the broker's process.
// The broker is started again with Perch's messages.
func TestTheBrokersMemoryIsBounded(t *testing.T) {
	h, _ := appliancetest.StartWithBroker(t)
	conn, err := mqttLogin(h.Config().MQTT.Listen, 4, "hoarder", config.MQTTUser, h.Secret(datadir.MQTTPasswordFile))
	must.Succeed(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute)) // replaces the deadline of mqttLogin
	const many = 4096                                     // messages of 250 KB: 1 GB
	sent, body := 0, append([]byte{0, 8, 't', '/'}, make([]byte, 6+250<<10)...)
	for err == nil && sent < many {
		copy(body[4:], fmt.Sprintf("%06d", sent))
		_, err = conn.Write(mqttPacket(0x31, body)) // retained
		sent++
	}
	if err == nil {
		t.Fatalf("it keeps %d MB", sent*250>>10)
	}
	h.Eventually("it is there again", func() bool { s := h.Mirror.Status(); return s.EndCount == 1 && s.Connected })
	again := appliancetest.Subscribe(t, h.MosquittoFlags()...)
	h.Eventually("what is retained is Perch's", func() bool { return again.Has(appliancetest.RobotConfig, "agent_state") })
	if slices.ContainsFunc(again.Lines(), func(line string) bool { return strings.HasPrefix(line, "t/") }) {
		t.Error("it keeps what ended it")
	}
	t.Logf("it ended after %d MB: %s", sent*250>>10, h.Mirror.Status().LastEndCause)
}

// TestSaidOverMQTTIsKeptUntilItIsSaid: a confirmed sentence is stored until the robot has spoken it, also if the
// robot is in a talk.
func TestSaidOverMQTTIsKeptUntilItIsSaid(t *testing.T) {
	t.Parallel()
	h, l := appliancetest.StartWithBroker(t)
	waits := func() []robot.Command {
		list, _, err := store.NewTable[[]robot.Command](h.DB, "waiting").Get("a0b1c2d3e4f5")
		if err != nil {
			t.Error(err)
		}
		return list
	}
	var talk sync.WaitGroup
	talk.Go(func() {
		if r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "who are you", "look up")}); !r.HasShown("The washing is done.") {
			t.Error("it was not said")
		}
	})
	h.Eventually("the robot is spoken to", func() bool { return slices.Contains(l.AgentStates(), "speaking") })
	h.Publish(appliancetest.RobotTopic+"say/set", "The washing is done.")
	if list := waits(); len(list) != 1 || list[0].Text != "The washing is done." {
		t.Errorf("it was confirmed, and on the disk is %+v", list)
	}
	talk.Wait()
	h.Eventually("it is told that it was said", func() bool {
		return l.Has(appliancetest.RobotTopic+"conversation", `"done"`, `"say"`) && len(waits()) == 0
	})
}
