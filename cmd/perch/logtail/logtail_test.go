package logtail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/event"
	"perch/gateway/owner/admin"
)

// loggedLine is a decoded line.
type loggedLine struct {
	At    time.Time
	Level string
	Msg   string
	Attrs map[string]any
}

func following(t *testing.T, l *Log, least slog.Level, after string) admin.LogFollower {
	t.Helper()
	f, ok := l.NewFollower(least, after)
	if !ok {
		t.Fatal("nobody may follow")
	}
	return f
}

// next returns the next line, or the zero line if the follower has read all lines.
func next(t *testing.T, f admin.LogFollower) (line loggedLine, id string, missed int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Next does not wait
	id, text, missed, err := f.Next(ctx)
	if errors.Is(err, context.Canceled) {
		return line, "", 0
	}
	if err := errors.Join(err, json.Unmarshal(text, &line)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return line, id, missed
}

type sealed struct{ secret string }

func (sealed) String() string { return "sealed" }

type nobody struct{}

func (*nobody) MarshalText() ([]byte, error) { panic("nil") }

// TestStoresWhatNextHandlerWrites: the log stores the lines, attributes and levels that the next handler writes.
func TestStoresWhatNextHandlerWrites(t *testing.T) {
	var out strings.Builder
	l := New()
	log := slog.New(l.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	log.Debug("not written")
	log.With("robot", "a").WithGroup("g").Warn("a \"line\"\n", "n", 5, "took", time.Second, "err", errors.New("why"), "sealed", sealed{"geheim"},
		slog.Group("in", "yes", true), "none", (*nobody)(nil), "raw", []byte("bytes"), "bad", "\xff\x01")
	f := following(t, l, slog.LevelDebug, "")
	defer f.Close()
	line, _, _ := next(t, f)
	if line.Level != "warn" || line.Msg != "a \"line\"\n" || time.Since(line.At) > time.Minute {
		t.Errorf("%+v", line)
	}
	want := `map[g.bad:` + "\ufffd\x01" + ` g.err:why g.in.yes:true g.n:5 g.none:!PANIC: nil g.raw:bytes g.sealed:sealed g.took:1s robot:a]`
	if got := fmt.Sprint(line.Attrs); got != want {
		t.Errorf("the attributes are\n%s\nwant\n%s", got, want)
	}
	if again, _, _ := next(t, f); again.Msg != "" {
		t.Errorf("there is more: %+v", again)
	}
	for _, word := range []string{"robot=a", "g.n=5", "g.took=1s", "g.sealed=sealed", "g.in.yes=true"} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("written is %s", &out)
		}
	}
}

// TestLogIsBounded: the number of lines, their total size and the size of each line are limited. A follower
// receives the number of lines that it has missed.
func TestLogIsBounded(t *testing.T) {
	l := New()
	log := slog.New(l.Handler(slog.NewTextHandler(io.Discard, nil)))
	slow := following(t, l, slog.LevelInfo, "")
	defer slow.Close()
	for i := range 700 {
		log.Info("line", "i", i)
	}
	line, id, missed := next(t, slow)
	if missed != 200 || line.Attrs["i"] != 200.0 {
		t.Errorf("%+v after %d", line, missed)
	}
	resumed := following(t, l, slog.LevelInfo, id)
	defer resumed.Close()
	if line, _, missed := next(t, resumed); line.Attrs["i"] != 201.0 || missed != 0 {
		t.Errorf("after %s comes %+v", id, line)
	}
	other := following(t, l, slog.LevelInfo, "another."+id)
	defer other.Close()
	if line, _, _ := next(t, other); line.Attrs["i"] != 200.0 {
		t.Errorf("of another start's id comes %+v", line)
	}
	for i := range 300 {
		log.Info(strings.Repeat("é", 3000), "i", i, "long", strings.Repeat("x", 1<<20), "more", strings.Repeat("y", 6000))
	}
	if r := l.rings[0]; r.bytes > maxBytes || len(r.lines) < 20 || len(r.lines) == maxLines {
		t.Errorf("%d bytes of %d lines are stored", r.bytes, len(r.lines))
	}
	for f := following(t, l, slog.LevelInfo, ""); ; {
		line, _, _ := next(t, f)
		if line.Msg == "" {
			break
		}
	}
}

// TestDebugLinesDisplaceNoOthers: lines of the level debug do not displace other lines, and are read in the order in
// which they were logged. Missed debug lines do not count for a follower of higher levels.
func TestDebugLinesDisplaceNoOthers(t *testing.T) {
	l := New()
	log := slog.New(l.Handler(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})))
	log.Info("first")
	all, others := following(t, l, slog.LevelDebug, ""), following(t, l, slog.LevelInfo, "")
	defer all.Close()
	defer others.Close()
	for i := range 2 * maxLines {
		log.Debug("detail", "i", i)
	}
	log.Warn("last")
	log.Debug("after")
	var seen []string
	id := ""
	for _, f := range []admin.LogFollower{others, all} {
		for {
			line, lineID, missed := next(t, f)
			if line.Msg == "" {
				break
			}
			if line.Msg != "detail" || missed > 0 {
				seen = append(seen, fmt.Sprint(line.Msg, " ", missed))
			}
			if line.Msg == "last" {
				id = lineID
			}
		}
	}
	if got, want := strings.Join(seen, ", "), "first 0, last 0, first 501, last 0, after 0"; got != want {
		t.Errorf("there is %q, not %q", got, want)
	}
	resumed := following(t, l, slog.LevelDebug, id)
	defer resumed.Close()
	if line, _, missed := next(t, resumed); line.Msg != "after" || missed != 0 {
		t.Errorf("after %s comes %+v", id, line)
	}
}

// TestFollowers: the number of followers is limited. Each follower receives the lines of its levels from any
// goroutine, and Close of the log ends all followers.
func TestFollowers(t *testing.T) {
	l := New()
	log := slog.New(l.Handler(slog.NewTextHandler(io.Discard, nil)))
	var all []admin.LogFollower
	for range maxFollowers {
		all = append(all, following(t, l, slog.LevelWarn, ""))
	}
	if _, ok := l.NewFollower(slog.LevelInfo, ""); ok {
		t.Error("one more may follow")
	}
	all[0].Close()
	all[0] = following(t, l, slog.LevelWarn, "")
	var writing, reading sync.WaitGroup
	for _, f := range all {
		reading.Go(func() {
			for n, missed := 0, 0; n+missed < 400; n++ {
				_, line, gone, err := f.Next(t.Context())
				if missed += gone; err != nil || !strings.Contains(string(line), `"level":"warn"`) {
					t.Errorf("%s, %v", line, err)
					return
				}
			}
		})
	}
	for range 4 {
		writing.Go(func() {
			for range 100 {
				log.Info("not for them")
				log.Warn("for them")
			}
		})
	}
	writing.Wait()
	reading.Wait()
	ended := make(chan error, 1)
	go func() {
		var err error
		for err == nil { // if the follower has missed lines of other levels, it has not read all lines of its level
			_, _, _, err = all[1].Next(t.Context())
		}
		ended <- err
	}()
	l.Close()
	if err := <-ended; !errors.Is(err, event.ErrClosed) {
		t.Errorf("it ends with %v", err)
	}
	for _, f := range all {
		f.Close()
	}
	log.Info("still kept")
}
