package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// shownRelays is how many avatar programs show what the robots do.
const shownRelays = 20

// avatarPrograms, in the environment, are the kinds and addresses of those: "warudo=ws://…".
const avatarPrograms = "PERCH_TEST_AVATAR_PROGRAMS"

// shownKinds are reached in every way there is: by WebSocket, without answers and with one
// for each message, by HTTP, by TCP and by UDP.
func shownKinds() []string {
	return []string{"warudo", "unreal", "webhook", "chatdollkit", "vrchat", "vmc"}
}

// shownProgram takes what it is told, and counts it.
type shownProgram struct {
	kind, url string
	told      func() int
	stop      func()
}

// newShownProgram starts one.
func newShownProgram(b *testing.B, kind string) shownProgram {
	b.Helper()
	var n atomic.Int64
	var serving sync.WaitGroup
	p := shownProgram{kind: kind, told: func() int { return int(n.Load()) }}
	switch kind {
	case "warudo", "unreal":
		a := appliancetest.AnsweringAvatar(b, "", func(text string) string { return answerOf(kind, text) })
		p.url, p.told, p.stop = "ws://"+a.Address, func() int { return len(a.All()) }, a.Kill
	case "webhook":
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.Add(1) }))
		p.url, p.stop = server.URL, server.Close
	case "chatdollkit":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		serving.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				serving.Go(func() {
					defer c.Close()
					for lines := bufio.NewScanner(c); lines.Scan(); {
						n.Add(1)
					}
				})
			}
		})
		p.url, p.stop = "tcp://"+l.Addr().String(), func() { _ = l.Close(); serving.Wait() }
	default:
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		serving.Go(func() {
			for packet := make([]byte, 1<<16); ; n.Add(1) {
				if _, _, err := c.ReadFrom(packet); err != nil {
					return
				}
			}
		})
		p.url, p.stop = "udp://"+c.LocalAddr().String(), func() { _ = c.Close(); serving.Wait() }
	}
	return p
}

// answerOf is what a program answers to a message; empty is nothing.
func answerOf(kind, text string) string {
	var call struct {
		Parameters struct {
			RequestID int `json:"RequestId"`
		}
	}
	if kind != "unreal" || json.Unmarshal([]byte(text), &call) != nil {
		return ""
	}
	return fmt.Sprintf(`{"RequestId":%d,"ResponseCode":200,"ResponseBody":{}}`, call.Parameters.RequestID)
}

// BenchmarkRelays is what robots notice of avatar programs beside their talks.
func BenchmarkRelays(b *testing.B) {
	say := appliancetest.Sentences(b, loadText)
	for b.Loop() {
		for _, relays := range []int{0, shownRelays} {
			var programs []shownProgram
			var addresses []string
			for i := range relays {
				p := newShownProgram(b, shownKinds()[i%len(shownKinds())])
				programs, addresses = append(programs, p), append(addresses, p.kind+"="+p.url)
			}
			a := begin(b, os.Args[0], b.TempDir(), nil, asLoadTarget+"=1", avatarPrograms+"="+strings.Join(addresses, " "))
			a.up()
			before := a.cpu(b)
			all := load(b, a.url, loadRobots, say, nil)
			used := a.cpu(b) - before
			a.stop()
			var gaps []time.Duration
			lost := 0
			for _, s := range all {
				gaps = append(gaps, s.Gaps...)
				lost += s.Dropped + s.Ignored + s.Cut + s.Bad + s.Underruns
			}
			told, of := map[string]int{}, map[string]int{}
			for _, p := range programs {
				p.stop()
				told[p.kind] += p.told()
				of[p.kind]++
			}
			for kind, n := range told {
				b.ReportMetric(float64(n)/float64(of[kind]), "messages-to-a-"+kind)
			}
			name := "without"
			if relays > 0 {
				name = "with-20"
			}
			b.ReportMetric(float64(simrobot.Quantile(gaps, 0.99).Microseconds())/1000, "ms-gap-p99-"+name)
			b.ReportMetric(float64(lost), "lost-or-dry-"+name)
			b.ReportMetric(used.Seconds(), "s-cpu-"+name)
		}
	}
}
