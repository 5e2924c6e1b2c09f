package acp

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"

	"perch/remote"
)

func silentLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200)
	text := "one\n\n  \r\ntwo\r\n" + long + "\nthree\n" + long
	for name, r := range map[string]io.Reader{
		"whole":   strings.NewReader(text),
		"by byte": iotest.OneByteReader(strings.NewReader(text)),
		"halved":  iotest.HalfReader(strings.NewReader(text)),
	} {
		var got []string
		for from := newLines(r, 100); ; {
			line, err := from.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				got = append(got, err.Error())
				continue
			}
			got = append(got, string(line))
		}
		if want := "one|two|" + remote.ErrTooLong.Error() + "|three|" + remote.ErrTooLong.Error(); strings.Join(got, "|") != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestInboxIsBounded(t *testing.T) {
	in := newInbox()
	piece := text(strings.Repeat("a", 1000))
	for range 2000 {
		in.put(piece)
	}
	if len(in.items) != 1 {
		t.Fatalf("text is not joined: %d items", len(in.items))
	}
	for range 2 * mostAsked {
		in.put(permission{})
	}
	if in.asked != mostAsked {
		t.Errorf("%d permissions wait", in.asked)
	}
	for range 2 * mostItems {
		in.put(toolChange{id: "x"})
	}
	if len(in.items) != mostItems {
		t.Errorf("%d items wait", len(in.items))
	}
	if !in.put(ended{}) {
		t.Error("the end was not taken")
	}
	it, over := in.take()
	if said, ok := it.(text); !ok || over || len(said) > mostText || len(said) < mostText-1000 {
		t.Errorf("%T of %d bytes, %v", it, len(said), over)
	}
	if n := len(in.close()); n != mostAsked {
		t.Errorf("%d permissions are given back", n)
	}
	if in.put(piece) {
		t.Error("a closed inbox takes more")
	}
}

// TestTheEndReportsWhatWasLeftOut: an answer with a hole is not passed off as whole.
func TestTheEndReportsWhatWasLeftOut(t *testing.T) {
	in := newInbox()
	in.put(text(strings.Repeat("a", mostText)))
	in.put(text("b"))
	in.put(ended{})
	if _, over := in.take(); over {
		t.Error("too early")
	}
	if _, over := in.take(); !over {
		t.Error("nobody is told")
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"), 2)
	f.Add([]byte("\r\n\r\n"), 1)
	f.Add(bytes.Repeat([]byte("x"), 70<<10), 66<<10)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		most = max(1, min(most, 1<<20))
		from := newLines(bytes.NewReader(data), most)
		for n := 0; ; n++ {
			line, err := from.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil && !errors.Is(err, remote.ErrTooLong) {
				t.Fatal(err)
			}
			if len(line) > most+1 || bytes.ContainsRune(line, '\n') {
				t.Fatalf("a line of %d", len(line))
			}
			if n > len(data) {
				t.Fatal("it does not end")
			}
		}
	})
}
