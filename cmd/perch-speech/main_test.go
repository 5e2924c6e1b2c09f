package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/cmd/perch-speech/models"
	"perch/command/commandtest"
	"perch/must"
	"perch/voice"
	wire "perch/voice/wyoming"
)

func TestMain(m *testing.M) {
	commandtest.Main(main)
	goleak.VerifyTestMain(m)
}

// commandLine runs a command line, and returns its exit code and what it prints.
func commandLine(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	code = run(t.Context(), args, &b, &b)
	return code, b.String()
}

func TestManualPage(t *testing.T) {
	commandtest.CheckManual(t, commands(), "../../packaging/man/perch-speech.1")
	commandtest.CheckCompletions(t, commands(), "../../packaging/completion")
}

func TestModelsCommands(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		line string
		code int
		want string
	}{
		{"models list", 0, "en_US-joe-medium"},
		{"models get en_US-joe-mediun", 2, "en_US-joe-medium"},
		{"models get", 2, "NAME"},
		{"models remove none", 1, "no model"},
		{"models check", 1, "there is no model that hears or speaks in"},
		{"serve --listen nowhere", 1, "listen"},
		{"models remove ../other", 1, "no model"},
	} {
		if code, out := commandLine(t, append(strings.Fields(test.line), "--models", dir)...); code != test.code || !strings.Contains(out, test.want) {
			t.Errorf("%s: %d %s, want %d and %q", test.line, code, out, test.code, test.want)
		}
	}
}

// writeModel writes files into the folder of a model. files maps names to contents.
func writeModel(t *testing.T, dir, name string, files map[string]string) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	for file, text := range files {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name, file), []byte(text), 0o644))
	}
}

// writeBrokenModel writes a model that ends the process that loads it.
func writeBrokenModel(t *testing.T, dir, name string) {
	t.Helper()
	writeModel(t, dir, name, map[string]string{"encoder_model.ort": "no weights", "decoder_model_merged.ort": "no weights", "tokenizer.bin": "\x01a"})
}

// start runs a supervisor until the test ends, and returns its address and its log.
func start(t *testing.T, dir string) (address string, log *lockedBuffer) {
	t.Helper()
	t.Setenv("PERCH_TEST_AS_PROGRAM", "1") // makes this binary perch-speech when the supervisor runs it
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	log = &lockedBuffer{}
	s := supervisor{models.Folder(dir), 1, l.(*net.TCPListener), log, slog.New(slog.NewTextHandler(log, nil)), true}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		l.Close()
		if t.Failed() {
			t.Log(log)
		}
	})
	return l.Addr().String(), log
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// describe returns the data of the response to a describe event. While the engines are being started, it waits for
// them.
func describe(t *testing.T, address string) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must.Succeed(t, err)
	defer conn.Close()
	must.Succeed(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	must.Succeed(t, wire.NewWriter(conn).Write(wire.Event{Type: wire.TypeDescribe}))
	e, err := wire.NewReader(conn, wire.Limits{}).Read()
	return string(e.Data), err
}

// children returns the IDs of the running children of this process.
func children(t *testing.T) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	must.Succeed(t, err)
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		var state string
		var parent int
		_, after, _ := strings.Cut(string(text), ") ")
		if _, err := fmt.Sscan(after, &state, &parent); err == nil && parent == os.Getpid() && state != "Z" {
			pid := must.Value(strconv.Atoi(filepath.Base(filepath.Dir(path))))(t)
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestBrokenModelsAreLeftOut checks that a model that ends the engines is left out at their next start, also if no other is
// left.
func TestBrokenModelsAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	writeBrokenModel(t, dir, "broken-en")
	writeBrokenModel(t, dir, "worse-de")
	address, log := start(t, dir)
	for !strings.Contains(log.String(), "model=broken-en") || !strings.Contains(log.String(), "model=worse-de") {
		runtime.Gosched()
	}
	if info, err := describe(t, address); err != nil || info != "" {
		t.Errorf("the engines describe %s (%v)", info, err)
	}
}

// TestModelsThatComeLaterAreServed checks that a model is served soon after it was put into the folder, and until it is
// removed, without a restart of the engines.
func TestModelsThatComeLaterAreServed(t *testing.T) {
	dir := t.TempDir()
	address, log := start(t, dir)
	awaitInfo := func(isRight func(info string) bool) {
		t.Helper()
		for began := time.Now(); ; runtime.Gosched() {
			info, err := describe(t, address)
			must.Succeed(t, err)
			if isRight(info) {
				return
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("the engines describe %s", info)
			}
		}
	}
	awaitInfo(func(info string) bool { return info == "" })
	pids := children(t)
	writeModel(t, dir, "anna", map[string]string{"de_DE-anna-low.onnx": "", "de_DE-anna-low.onnx.json": "no settings"})
	awaitInfo(func(info string) bool { return strings.Contains(info, `"anna"`) })
	for !strings.Contains(log.String(), "a model cannot be loaded") { // it was loaded
		runtime.Gosched()
	}
	speech, err := wire.NewSpeech("tcp://" + address)
	must.Succeed(t, err)
	if list, err := speech.Models(t.Context()); err != nil || list[0] != (wire.SpeechModel{Name: "anna", Does: "speaks", Language: "de-DE", Source: filepath.Join(dir, "anna"), Installed: true}) ||
		len(list) != 1+len(models.Catalogue()) {
		t.Errorf("the models are %+v, %v", list, err)
	}
	must.Succeed(t, speech.Remove(t.Context(), "anna"))
	awaitInfo(func(info string) bool { return info == "" })
	if again := children(t); !slices.Equal(again, pids) {
		t.Errorf("the processes were %v and are %v", pids, again)
	}
}

// TestKilledEnginesAreStartedAgain checks that engines that were killed are started again, and serve the same address.
func TestKilledEnginesAreStartedAgain(t *testing.T) {
	dir := t.TempDir()
	writeBrokenModel(t, dir, "broken-en")
	// This voice cannot be loaded, but does not end the process.
	writeModel(t, dir, "anna", map[string]string{"de_DE-anna-low.onnx": "", "de_DE-anna-low.onnx.json": "no settings"})
	address, log := start(t, dir)
	// Each process of the engines logs an error for anna. The first one then ends, because it loads broken-en, too.
	for engines := 2; engines <= 4; engines++ {
		for strings.Count(log.String(), "a model cannot be loaded") < engines {
			runtime.Gosched()
		}
		info, err := describe(t, address)
		if err != nil || !strings.Contains(info, "anna") || strings.Contains(info, "broken-en") {
			t.Errorf("the engines describe %s (%v)", info, err)
		}
		pids := children(t)
		if len(pids) != 1 {
			t.Fatalf("the processes are %v", pids)
		}
		must.Succeed(t, syscall.Kill(pids[0], syscall.SIGKILL))
	}
}

// TestOnlyThisMachineIsServedByDefault checks that the default address is a loopback address, because the protocol has
// no password.
func TestOnlyThisMachineIsServedByDefault(t *testing.T) {
	address, err := netip.ParseAddrPort(serveCommand().Flag("listen").DefValue)
	if err != nil || !address.Addr().IsLoopback() {
		t.Errorf("serve listens at %v, %v", address, err)
	}
}

func TestWordErrors(t *testing.T) {
	for written, want := range map[string]int{
		"What time is it in Tokyo?": 0, "what time is it, in tokyo": 0, "What time is in Tokyo": 1, "What time is it in Kyoto, now?": 2, "": 6,
	} {
		if got := voice.WordErrors(wordsOf("What time is it in Tokyo?"), wordsOf(written)); got != want {
			t.Errorf("%q has %d wrong words, want %d", written, got, want)
		}
	}
}
