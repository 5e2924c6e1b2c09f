package robot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/door"
	"perch/limit"
	"perch/plain"
)

// Errors of a call to a robot's tool.
var (
	// ErrNoTool is wrapped for a tool the robot does not list.
	ErrNoTool = &door.Fault{Word: "unknown_tool", Sentence: "the robot has no such tool", HTTP: http.StatusNotFound}
	// ErrToolTimeout is wrapped where a robot does not answer in time.
	ErrToolTimeout = &door.Fault{Word: "tool_timeout", Sentence: "the robot did not answer the call in time", HTTP: http.StatusGatewayTimeout}
	// ErrToolFailed is wrapped where the robot answers that the tool failed.
	ErrToolFailed = &door.Fault{Word: "tool_failed", Sentence: "the robot's tool failed", HTTP: http.StatusBadGateway}
	// ErrChannelClosed is returned where the channel closed before the answer.
	ErrChannelClosed = &door.Fault{Word: "robot_offline", Sentence: "the robot's channel closed before the tool had answered",
		HTTP: http.StatusConflict}
)

// callError is one of them with the robot's own words.
type callError struct {
	*door.Fault
	detail string
}

func (e *callError) Error() string { return e.Sentence + ": " + e.detail }
func (e *callError) Unwrap() error { return e.Fault }

func failedCall(kind *door.Fault, format string, a ...any) error {
	return &callError{kind, plain.Clip(fmt.Sprintf(format, a...), limit.Data)}
}

// Tools run on the robot's main loop and answer within milliseconds, but those
// that fetch or send a picture or a file over the network.
const (
	callTimeout = 10 * time.Second
	// The firmware itself waits 30 s for the answer to a picture.
	slowCallTimeout = 45 * time.Second

	// What is kept of a robot's tools' names and answers, in bytes.
)

// timeout is how long a tool may take.
func timeout(tool string) time.Duration {
	for _, slow := range []string{"photo", "camera", "snapshot", "image", "upgrade", "download"} {
		if strings.Contains(strings.ToLower(tool), slow) {
			return slowCallTimeout
		}
	}
	return callTimeout
}

// What a robot can make us remember.
const (
	mostTools = 200
	mostPages = 50
	// The bounds for all robots with an open channel, and for all strangers.
	adoptedToolBytes  = 16 << 20
	strangerToolBytes = 2 << 20
)

// memoryLimit is what several toolboxes may hold together, in bytes of JSON.
type memoryLimit struct{ left atomic.Int64 }

func newMemoryLimit(bytes int64) *memoryLimit {
	r := &memoryLimit{}
	r.left.Store(bytes)
	return r
}

// take takes bytes, or reports that there are not so many left.
func (r *memoryLimit) take(bytes int) bool {
	if r.left.Add(-int64(bytes)) >= 0 {
		return true
	}
	r.give(bytes)
	return false
}

func (r *memoryLimit) give(bytes int) { r.left.Add(int64(bytes)) }

// toolbox is the client of the robot's MCP server: it asks for the list of
// tools, page by page, and matches answers to calls by number.
type toolbox struct {
	send  func(xiaozhi.Request) error
	limit *memoryLimit

	mu      sync.Mutex
	nextID  int
	calls   map[int]chan xiaozhi.Response
	listing int // id of the page asked for
	pages   int
	fresh   []device.Tool // of the list being read
	size    int           // of that, in JSON
	left    int           // out of that
	tools   []device.Tool
	held    int // of limit, for tools
	closed  bool
	ended   chan struct{} // is closed once the list being read is whole, or cannot be had; nil before the first
}

// newToolbox begins with the tools known from an earlier session.
func newToolbox(known []device.Tool, r *memoryLimit, send func(xiaozhi.Request) error) *toolbox {
	return &toolbox{send: send, limit: r, tools: known, calls: map[int]chan xiaozhi.Response{}}
}

// introduce gives our name, and the address for the camera's pictures. The firmware
// reads nothing else of initialize, and takes it again at any time.
func (b *toolbox) introduce(version, visionURL, visionToken string) error {
	capabilities := map[string]any{}
	if visionURL != "" {
		capabilities["vision"] = map[string]any{"url": visionURL, "token": visionToken}
	}
	b.mu.Lock()
	b.nextID++
	hello := xiaozhi.Request{ID: b.nextID, Method: "initialize", Params: map[string]any{
		"protocolVersion": "2024-11-05",
		"capabilities":    capabilities,
		"clientInfo":      map[string]any{"name": "perch", "version": version},
	}}
	b.mu.Unlock()
	if err := b.send(hello); err != nil {
		return err
	}
	return b.send(xiaozhi.Request{Method: "notifications/initialized"})
}

// list asks for the first page of tools.
func (b *toolbox) list() error {
	b.mu.Lock()
	b.forgetFresh()
	b.pages, b.left = 0, 0
	b.endList()
	b.ended = make(chan struct{})
	first := b.page("")
	b.mu.Unlock()
	return b.send(first)
}

// endList lets those go on who wait for the list. b.mu is held.
func (b *toolbox) endList() {
	if b.ended != nil {
		close(b.ended)
		b.ended = nil
	}
}

// firstListWithin is how long the first words to a robot wait for its tools.
const firstListWithin = time.Second

// await waits for the list of a robot of which no tool is known yet: one that is new
// here and is written to hears its first words before it has been asked for them.
func (b *toolbox) await(ctx context.Context) {
	b.mu.Lock()
	ended, known := b.ended, len(b.tools) > 0
	b.mu.Unlock()
	if ended == nil || known {
		return
	}
	wait, cancel := context.WithTimeout(ctx, firstListWithin)
	defer cancel()
	select {
	case <-ended:
	case <-wait.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.ended == ended && ctx.Err() == nil {
			b.endList() // one that never lists any is waited for once
		}
	}
}

// forgetFresh gives up the list being read.
func (b *toolbox) forgetFresh() {
	b.limit.give(b.size)
	b.fresh, b.size = nil, 0
}

// page is the request for the page that begins with the tool named cursor.
func (b *toolbox) page(cursor string) xiaozhi.Request {
	b.nextID++
	b.listing = b.nextID
	b.pages++
	return xiaozhi.Request{ID: b.nextID, Method: "tools/list", Params: map[string]any{"cursor": cursor, "withUserTools": true}}
}

// deliver takes a response. It returns the tools once the last page of their list is in.
// Where a later page cannot be had it returns those of the pages before, and the error.
func (b *toolbox) deliver(payload json.RawMessage) (listed []device.Tool, err error) {
	r, err := xiaozhi.ParseResponse(payload)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	if b.listing != 0 && r.ID == b.listing {
		next, listed, err := b.listed(r)
		b.mu.Unlock()
		if next != nil {
			return nil, b.send(*next)
		}
		return listed, err
	}
	answer, waits := b.calls[r.ID]
	delete(b.calls, r.ID)
	b.mu.Unlock()
	if waits {
		answer <- r // has a slot for it
	}
	return nil, nil
}

// listedTool is a tool as the firmware lists it.
type listedTool struct {
	device.Tool
	Annotations struct {
		Audience []string `json:"audience"`
	} `json:"annotations"`
}

func (b *toolbox) listed(r xiaozhi.Response) (next *xiaozhi.Request, listed []device.Tool, err error) {
	b.listing = 0
	defer func() {
		if next == nil {
			b.endList()
		}
	}()
	var page struct {
		Tools      []listedTool `json:"tools"`
		NextCursor string       `json:"nextCursor"`
	}
	// The firmware answers with an error where the tool that a page begins with fits no page.
	failed := error(r.Error)
	if r.Error == nil {
		failed = json.Unmarshal(r.Result, &page)
	}
	if failed != nil {
		if len(b.fresh) > 0 {
			b.replace()
			listed = b.tools
		}
		return nil, listed, fmt.Errorf("tools/list, page %d: %w", b.pages, failed)
	}
	for _, t := range page.Tools {
		t.Description = plain.Clip(t.Description, limit.Data)
		t.UserOnly = len(t.Annotations.Audience) > 0 && !slices.Contains(t.Annotations.Audience, "assistant")
		kept, err := json.Marshal(t.Tool)
		size := len(kept) + len(",")
		fits := len("[]")+b.size+size <= limit.Body && len(b.fresh) < mostTools
		if err != nil || !fits || len(t.Name) > limit.Name || t.Name == "" || !b.limit.take(size) {
			b.left++
			continue
		}
		b.size += size
		b.fresh = append(b.fresh, t.Tool)
	}
	if page.NextCursor != "" && b.pages < mostPages && len(b.fresh) < mostTools {
		request := b.page(page.NextCursor)
		return &request, nil, nil
	}
	b.replace()
	return nil, b.tools, nil
}

// replace has the list just read be the robot's tools. b.mu is held.
func (b *toolbox) replace() {
	b.limit.give(b.held)
	b.tools, b.held = b.fresh, b.size
	b.fresh, b.size = nil, 0
}

// omitted is how many tools of the list just read are not taken.
func (b *toolbox) omitted() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}

// Tools are those the robot lists, or listed last time.
func (b *toolbox) Tools() []device.Tool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools
}

// Call runs a tool. The arguments are first fitted to the robot's schema, because
// the firmware silently ignores what it does not know.
func (b *toolbox) Call(ctx context.Context, name string, arguments map[string]any) (device.Result, error) {
	tool, listed := device.FindTool(b.Tools(), name)
	if !listed {
		return device.Result{}, failedCall(ErrNoTool, "%s", plain.Clip(name, limit.Name))
	}
	fitted, err := tool.Fit(arguments)
	if err != nil {
		return device.Result{}, err
	}
	request, answer, err := b.register(name, fitted)
	if err != nil {
		return device.Result{}, err
	}
	defer b.drop(request.ID)
	if err := b.send(request); err != nil {
		return device.Result{}, err
	}
	within := timeout(name)
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case r, open := <-answer:
		if !open {
			return device.Result{}, ErrChannelClosed
		}
		return result(name, r)
	case <-timer.C:
		return device.Result{}, failedCall(ErrToolTimeout, "%s after %s", name, within)
	case <-ctx.Done():
		return device.Result{}, ctx.Err()
	}
}

func (b *toolbox) register(name string, arguments map[string]any) (xiaozhi.Request, <-chan xiaozhi.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return xiaozhi.Request{}, nil, ErrChannelClosed
	}
	b.nextID++
	answer := make(chan xiaozhi.Response, 1)
	b.calls[b.nextID] = answer
	params := map[string]any{"name": name, "arguments": arguments}
	return xiaozhi.Request{ID: b.nextID, Method: "tools/call", Params: params}, answer, nil
}

func (b *toolbox) drop(id int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.calls, id)
}

// close fails every call that waits, and frees the memory. It is called once.
func (b *toolbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgetFresh()
	b.limit.give(b.held)
	b.held = 0
	b.closed = true
	b.endList()
	for id, answer := range b.calls {
		close(answer)
		delete(b.calls, id)
	}
}

// statusTool ends the name of the tool by which every build reports its condition.
const statusTool = "get_device_status"

// call runs one of the robot's tools.
func (s *session) call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	return callTool(ctx, s.toolbox, tool, arguments, func(e event.RobotStatus) {
		s.server.keepStatus(s.robot.ID, e)
		s.publish(e)
	})
}

// callTool runs one of a robot's tools. It publishes the condition that a robot
// answers to any caller: its battery is reported nowhere else.
func callTool(ctx context.Context, b *toolbox, tool string, arguments map[string]any,
	publish func(event.RobotStatus)) (device.Result, error) {
	answer, err := b.Call(ctx, tool, arguments)
	if err == nil && strings.HasSuffix(tool, statusTool) {
		if status, ok := parseStatus(answer.Text); ok {
			publish(status)
		}
	}
	return answer, err
}

// parseStatus makes an event of it.
func parseStatus(answer string) (event.RobotStatus, bool) {
	status, err := device.ParseStatus(answer)
	return event.RobotStatus{
		Volume: status.Volume, Brightness: status.Brightness, Battery: status.Battery, Charging: status.Charging, Signal: status.Signal,
	}, err == nil
}
