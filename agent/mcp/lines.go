package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"sync"

	"perch/limit"
	"perch/remote"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Bounds of what is read of a process.
const (
	mostGarbage = 200  // lines in a row that are not of the protocol
	mostBatch   = 1000 // messages in one line
	ends        = 256  // bytes kept of both ends of a line that is too long
)

// lines reads messages, one to a line. Lines that hold none are passed over,
// because many a server has a library that greets on standard output. Of one
// that is too long both ends are looked at, so that the call which it answers
// fails at once and alone.
type lines struct {
	remote.Lines
	waiting []jsonrpc.Message // of a line with several
	garbage int               // lines in a row
}

func (l *lines) from(r io.Reader) {
	l.Lines = remote.Lines{R: bufio.NewReaderSize(r, 16<<10), Most: limit.Message, Ends: ends}
}

// next is the next message. The error is errNoMCP where too much comes that is
// no message, and the reader's else.
func (l *lines) next() (jsonrpc.Message, error) {
	for len(l.waiting) == 0 {
		line, err := l.Next()
		if err != nil && !errors.Is(err, remote.ErrTooLong) {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err != nil {
			l.waiting = tooLong(line)
		} else {
			l.waiting = messages(line)
		}
		if len(l.waiting) > 0 {
			l.garbage = 0
		} else if l.garbage++; l.garbage > mostGarbage {
			return nil, errNoMCP
		}
	}
	m := l.waiting[0]
	l.waiting = l.waiting[1:]
	return m, nil
}

// messages are those of a line: none where it is no message, several where it
// is an array of them, as an older revision of the protocol has it.
func messages(line []byte) (all []jsonrpc.Message) {
	raw := []json.RawMessage{line}
	if line[0] == '[' {
		if json.Unmarshal(line, &raw) != nil || len(raw) > mostBatch {
			return nil
		}
	} else if line[0] != '{' {
		return nil
	}
	for _, one := range raw {
		m, err := jsonrpc.DecodeMessage(one)
		if err != nil || m == nil {
			return nil
		}
		all = append(all, m)
	}
	return all
}

// tooLong makes an answer of one that is too long, where either end shows
// to which call it belongs. The calls of this side have numbers.
func tooLong(ends []byte) []jsonrpc.Message {
	found := answeredID().FindSubmatch(ends)
	if found == nil {
		return nil
	}
	n, err := strconv.ParseInt(string(append(found[1], found[2]...)), 10, 64)
	if err != nil {
		return nil
	}
	id, err := jsonrpc.MakeID(float64(n))
	if err != nil {
		return nil
	}
	return []jsonrpc.Message{&jsonrpc.Response{ID: id, Error: errTooLong}}
}

// answeredID finds the id of an answer that is cut out in the middle.
var answeredID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,\s*"result"|"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}$`)
})
