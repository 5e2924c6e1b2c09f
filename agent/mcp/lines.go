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

// Limits of a process's output.
const (
	maxGarbage = 200  // consecutive lines that are not JSON-RPC messages
	maxBatch   = 1000 // messages in one line
	endBytes   = 256  // bytes examined at each end of a line that is too long
)

// lines reads messages from the output of a process, one per line. It skips other lines,
// because many servers use libraries that print a greeting. If a line is too long, lines
// looks for the ID of a response in both ends of the line, so that only the call with this
// ID fails.
type lines struct {
	remote.Lines
	pending []jsonrpc.Message // messages of the latest line that were not returned yet
	garbage int               // consecutive lines that are not messages
}

// reset makes l read from r.
func (l *lines) reset(r io.Reader) {
	l.Lines = remote.Lines{R: bufio.NewReaderSize(r, 16<<10), MaxBytes: limit.Message, Ends: endBytes}
}

// next returns the next message, errNoMCP after too many lines without a message, or the
// error of the reader.
func (l *lines) next() (jsonrpc.Message, error) {
	for len(l.pending) == 0 {
		line, err := l.Next()
		if err != nil && !errors.Is(err, remote.ErrTooLong) {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err != nil {
			l.pending = failedResponse(line)
		} else {
			l.pending = parseMessages(line)
		}
		if len(l.pending) > 0 {
			l.garbage = 0
		} else if l.garbage++; l.garbage > maxGarbage {
			return nil, errNoMCP
		}
	}
	m := l.pending[0]
	l.pending = l.pending[1:]
	return m, nil
}

// parseMessages returns the messages in a line that is not empty: one if the line is a
// JSON-RPC message, several if it is an array of messages (a batch, of an older revision of
// the protocol), otherwise none.
func parseMessages(line []byte) (messages []jsonrpc.Message) {
	raw := []json.RawMessage{line}
	if line[0] == '[' {
		if json.Unmarshal(line, &raw) != nil || len(raw) > maxBatch {
			return nil
		}
	} else if line[0] != '{' {
		return nil
	}
	for _, data := range raw {
		m, err := jsonrpc.DecodeMessage(data)
		if err != nil || m == nil {
			return nil
		}
		messages = append(messages, m)
	}
	return messages
}

// failedResponse returns a response with the error errTooLong, in place of a response that
// is too long. ends is the beginning and the end of the long line, joined. If ends does not
// contain the ID of a call, failedResponse returns nil. This client's IDs are numbers.
func failedResponse(ends []byte) []jsonrpc.Message {
	match := responseID().FindSubmatch(ends)
	if match == nil {
		return nil
	}
	n, err := strconv.ParseInt(string(append(match[1], match[2]...)), 10, 64)
	if err != nil {
		return nil
	}
	id, err := jsonrpc.MakeID(float64(n))
	if err != nil {
		return nil
	}
	return []jsonrpc.Message{&jsonrpc.Response{ID: id, Error: errTooLong}}
}

// responseID matches the ID in a response whose middle is missing.
var responseID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,\s*"result"|"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}$`)
})
