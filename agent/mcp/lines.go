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

// Bounds of a process's output.
const (
	mostGarbage = 200  // consecutive lines that are not of the protocol
	mostBatch   = 1000 // messages in one line
	keptEnds    = 256  // bytes retained of both ends of a line that is too long
)

// lines reads messages, one per line. Other lines are skipped, because many servers use
// libraries that print a greeting on standard output. Of a line that is too long both
// ends are examined, so that only the call that it answers fails, and at once.
type lines struct {
	remote.Lines
	waiting []jsonrpc.Message // from a line with several
	garbage int               // consecutive lines
}

func (l *lines) from(r io.Reader) {
	l.Lines = remote.Lines{R: bufio.NewReaderSize(r, 16<<10), Most: limit.Message, Ends: keptEnds}
}

// next returns the next message. It returns errNoMCP after too many lines without a
// message, and otherwise the reader's error.
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

// messages returns the messages of a line: none if it is not a message, several if it is
// an array, as in an older revision of the protocol.
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

// tooLong returns an error response for an answer that is too long, if either end
// contains its id. The calls from this side have numeric ids.
func tooLong(keptEnds []byte) []jsonrpc.Message {
	found := answeredID().FindSubmatch(keptEnds)
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

// answeredID matches the id of an answer whose middle is missing.
var answeredID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,\s*"result"|"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}$`)
})
