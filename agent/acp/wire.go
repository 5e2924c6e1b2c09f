package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"perch/agent"
)

// What is taken of a peer.
const (
	mostLine = 8 << 20 // a tool's whole output may stand in one
	mostID   = 512     // of a request, a session, a tool call or an option
)

// message is any JSON-RPC 2.0 object: a request has a method and an id, a
// notification a method, a response an id.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// rpcError is why a request failed, in the peer's words.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string {
	return fmt.Sprintf("%s (%d)", agent.Redact(e.Message, mostTitle), e.Code)
}

// Codes of JSON-RPC and of the protocol.
const (
	codeNoMethod  = -32601
	codeBadParams = -32602
	codeAgent     = -32000 // of an agent's own: a login is needed, most often
)

// identified reports whether there is an id that can be answered.
func (m *message) identified() bool {
	return len(m.ID) > 0 && len(m.ID) <= mostID && !bytes.Equal(m.ID, []byte("null"))
}

// number is the id as we gave it. Some peers turn it into a string.
func (m *message) number() (int64, bool) {
	n, err := strconv.ParseInt(string(bytes.Trim(m.ID, `"`)), 10, 64)
	return n, err == nil
}

// errLong is returned for a line that is too long; it has been skipped.
var errLong = errors.New("the line is too long")

// lines reads a stream line by line, and holds no more than one of them.
type lines struct {
	r    *bufio.Reader
	most int
	line []byte
}

func newLines(r io.Reader, most int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), most: most}
}

// next is the next line that is not blank, valid until next is called again.
// The last may lack its end.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.whole()
		line = bytes.TrimSpace(line)
		switch {
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case err != nil:
			return nil, err
		case len(line) > 0:
			return line, nil
		}
	}
}

func (l *lines) whole() ([]byte, error) {
	if cap(l.line) > 1<<20 {
		l.line = nil // one long line is no reason to keep so much for good
	}
	l.line = l.line[:0]
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		if long = long || len(l.line)+len(part) > l.most+1; !long {
			l.line = append(l.line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLong
		default:
			return l.line, err
		}
	}
}
