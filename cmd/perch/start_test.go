package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestServeEndsWithWhatToDoNext, of the program itself.
func TestServeEndsWithWhatToDoNext(t *testing.T) {
	data := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "serve", "--data", data, "--listen", "127.0.0.1:0", "--local", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), asProgram+"=1", "PERCH_MQTT_BROKER=none", "PERCH_MDNS_ENABLED=false")
	var out said
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(out.String(), "doctor") && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	want := fmt.Sprintf(
		"No robot can come: only this machine reaches the addresses in listen.\nWhat works and what does not:\n    perch doctor --data %s\n", data)
	if out.String() != want {
		t.Errorf("it says %q, not %q", out.String(), want)
	}
}

// TestWhyItDidNotStartIsAnErrorInTheJournal: each of its lines has the priority
// that journalctl -p looks for.
func TestWhyItDidNotStartIsAnErrorInTheJournal(t *testing.T) {
	stream, err := os.Create(t.TempDir() + "/journal")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	about, err := stream.Stat()
	if err != nil {
		t.Fatal(err)
	}
	own := about.Sys().(*syscall.Stat_t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "serve", "--config", written(t, "nmae: x\nadoption: maybe"))
	cmd.Env = append(os.Environ(), asProgram+"=1", fmt.Sprintf("JOURNAL_STREAM=%d:%d", own.Dev, own.Ino))
	cmd.Stderr = stream
	_ = cmd.Run() // it ends with 2, as of every such configuration
	text, err := os.ReadFile(stream.Name())
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); err != nil || len(lines) != 2 ||
		!strings.HasPrefix(lines[0], "<3>perch serve: ") || !strings.HasPrefix(lines[1], "<3>perch serve: ") {
		t.Errorf("in the journal is %q, %v", text, err)
	}
}

// said is what a program writes while it runs.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
