package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestLines checks the line endings, and what is returned of a line that is too long.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, c := range map[string]struct {
		text string
		of   Lines
		want string
	}{
		"LF":                    {"one\n\ntwo\r\nthree", Lines{}, "one||two\r|three"},
		"CR, LF and CRLF":       {"one\rtwo\r\n\nthree\n\r", Lines{CR: true}, "one|two||three|"},
		"a mark of Unicode":     {"\ufeffone\n\ufefftwo\n", Lines{}, "one|\ufefftwo"},
		"too long":              {"one\n" + long + "\ntwo", Lines{}, "one|a line is too long"},
		"too long, and its end": {"one\nab" + long + "cd\ntwo\n" + long, Lines{Ends: 2}, "one|abcd, a line is too long|two|xxxx, a line is too long"},
	} {
		for how, r := range map[string]io.Reader{
			"whole":   strings.NewReader(c.text),
			"by byte": iotest.OneByteReader(strings.NewReader(c.text)),
			"halved":  iotest.HalfReader(strings.NewReader(c.text)),
		} {
			l := c.of
			l.R, l.MaxBytes = bufio.NewReader(r), 100
			var got []string
			for {
				line, err := l.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				switch {
				case err == nil:
					got = append(got, string(line))
					continue
				case l.Ends > 0:
					got = append(got, string(line)+", "+err.Error())
					continue
				}
				got = append(got, err.Error())
				break
			}
			if strings.Join(got[:min(len(got), strings.Count(c.want, "|")+1)], "|") != c.want {
				t.Errorf("%s, %s: %q", name, how, got)
			}
		}
	}
}

// TestALongLineIsNotKept checks that a line longer than the limit is not stored in memory as a whole.
func TestALongLineIsNotKept(t *testing.T) {
	const most = 8 << 20
	from := Lines{R: bufio.NewReader(io.MultiReader(bytes.NewReader(make([]byte, 20<<20)), strings.NewReader("\n{}\n"))), MaxBytes: most, Ends: 1}
	if _, err := from.Next(); !errors.Is(err, ErrTooLong) {
		t.Fatal(err)
	}
	if cap(from.line) > 4*most {
		t.Errorf("%d bytes are held", cap(from.line))
	}
	if line, err := from.Next(); string(line) != "{}" {
		t.Errorf("%q, %v", line, err)
	}
}

// FuzzLines checks that no line is longer than the limit, and that the end of the stream is reached.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"), 2)
	f.Add([]byte("\r\n\r\n"), 1)
	f.Add(bytes.Repeat([]byte("x"), 70<<10), 66<<10)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		from := Lines{R: bufio.NewReader(bytes.NewReader(data)), MaxBytes: max(1, min(most, 1<<20)), Ends: 1}
		for n := 0; ; n++ {
			line, err := from.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil && !errors.Is(err, ErrTooLong) {
				t.Fatal(err)
			}
			if len(line) > from.MaxBytes+1 || bytes.ContainsRune(line, '\n') {
				t.Fatalf("a line of %d", len(line))
			}
			if n > len(data) {
				t.Fatal("it does not end")
			}
		}
	})
}
