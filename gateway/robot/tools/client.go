// Package tools is the client of a robot's MCP server: it lists the robot's tools and calls them.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// Tools run on the robot's main loop and answer within milliseconds, unless they fetch or send a
// picture or a file over the network. The firmware itself waits 30 s for the answer to a picture.
const (
	callTimeout     = 10 * time.Second
	slowCallTimeout = 45 * time.Second
)

// timeout returns how long a tool may take.
func timeout(tool string) time.Duration {
	for _, slow := range []string{"photo", "camera", "snapshot", "image", "upgrade", "download"} {
		if strings.Contains(strings.ToLower(tool), slow) {
			return slowCallTimeout
		}
	}
	return callTimeout
}

// What a robot can make us store.
const (
	MaxTools  = 200
	mostPages = 50
)

// Budget bounds the tools that several clients hold together, in bytes of JSON.
type Budget struct{ left atomic.Int64 }

func NewBudget(bytes int64) *Budget {
	r := &Budget{}
	r.left.Store(bytes)
	return r
}

// reserve takes bytes, or reports that not so many are left.
func (r *Budget) reserve(bytes int) bool {
	if r.left.Add(-int64(bytes)) >= 0 {
		return true
	}
	r.release(bytes)
	return false
}

func (r *Budget) release(bytes int) { r.left.Add(int64(bytes)) }

// Client asks a robot for the list of its tools, page by page, and matches the answers to calls by
// their number. Any goroutine may call its methods.
type Client struct {
	send  func(xiaozhi.Request) error
	limit *Budget

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

// New returns a client that sends requests by send. Until the robot has listed its tools it has
// those known from an earlier session.
func New(known []device.Tool, r *Budget, send func(xiaozhi.Request) error) *Client {
	return &Client{send: send, limit: r, tools: known, calls: map[int]chan xiaozhi.Response{}}
}

// Introduce gives our name, and the address for the camera's pictures. The firmware reads nothing
// else of initialize, and accepts it again at any time.
func (b *Client) Introduce(version, visionURL, visionToken string) error {
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

// RequestList asks for the first page of tools.
func (b *Client) RequestList() error {
	b.mu.Lock()
	b.forgetFresh()
	b.pages, b.left = 0, 0
	b.endList()
	b.ended = make(chan struct{})
	first := b.page("")
	b.mu.Unlock()
	return b.send(first)
}

// endList wakes AwaitList. b.mu is held.
func (b *Client) endList() {
	if b.ended != nil {
		close(b.ended)
		b.ended = nil
	}
}

// firstListWithin is how long the first words to a robot wait for its tools.
const firstListWithin = time.Second

// AwaitList waits for the list of a robot whose tools are not known yet. A new robot may hear
// its first words before it has been asked for its tools.
func (b *Client) AwaitList(ctx context.Context) {
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
			b.endList() // a robot that never lists any is awaited once
		}
	}
}

// forgetFresh drops the list being read. b.mu is held.
func (b *Client) forgetFresh() {
	b.limit.release(b.size)
	b.fresh, b.size = nil, 0
}

// page returns the request for the page that begins with the tool named cursor. b.mu is held.
func (b *Client) page(cursor string) xiaozhi.Request {
	b.nextID++
	b.listing = b.nextID
	b.pages++
	return xiaozhi.Request{ID: b.nextID, Method: "tools/list", Params: map[string]any{"cursor": cursor, "withUserTools": true}}
}

// Deliver handles a response. With the last page of the list it returns all tools. If a later page
// fails it returns the tools of the pages before, and the error.
func (b *Client) Deliver(payload json.RawMessage) (listed []device.Tool, err error) {
	r, err := xiaozhi.ParseResponse(payload)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	if b.listing != 0 && r.ID == b.listing {
		next, listed, err := b.handlePage(r)
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

// handlePage handles a page of the list, and returns the request for the next page or all tools.
// b.mu is held.
func (b *Client) handlePage(r xiaozhi.Response) (next *xiaozhi.Request, listed []device.Tool, err error) {
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
		fits := len("[]")+b.size+size <= limit.Body && len(b.fresh) < MaxTools
		if err != nil || !fits || len(t.Name) > limit.Name || t.Name == "" || !b.limit.reserve(size) {
			b.left++
			continue
		}
		b.size += size
		b.fresh = append(b.fresh, t.Tool)
	}
	if page.NextCursor != "" && b.pages < mostPages && len(b.fresh) < MaxTools {
		request := b.page(page.NextCursor)
		return &request, nil, nil
	}
	b.replace()
	return nil, b.tools, nil
}

// replace makes the list just read the robot's tools. b.mu is held.
func (b *Client) replace() {
	b.limit.release(b.held)
	b.tools, b.held = b.fresh, b.size
	b.fresh, b.size = nil, 0
}

// Omitted returns how many tools of the latest list exceed the limits and were left out.
func (b *Client) Omitted() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}

// Tools returns the tools that the robot lists, or listed last time.
func (b *Client) Tools() []device.Tool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools
}

// Call runs a tool. It first fits the arguments to the robot's schema, because the firmware silently
// ignores what it does not know. Its errors wrap those of this package, device.ErrArguments, the
// error of sending, or the context's.
func (b *Client) Call(ctx context.Context, name string, arguments map[string]any) (device.Result, error) {
	tool, listed := device.FindTool(b.Tools(), name)
	if !listed {
		return device.Result{}, Failed(ErrNoTool, "%s", plain.Clip(name, limit.Name))
	}
	fitted, err := tool.Fit(arguments)
	if err != nil {
		return device.Result{}, err
	}
	request, answer, err := b.register(name, fitted)
	if err != nil {
		return device.Result{}, err
	}
	defer b.forget(request.ID)
	if err := b.send(request); err != nil {
		return device.Result{}, err
	}
	within := timeout(name)
	select {
	case r, open := <-answer:
		if !open {
			return device.Result{}, ErrChannelClosed
		}
		return result(name, r)
	case <-time.After(within):
		return device.Result{}, Failed(ErrToolTimeout, "%s after %s", name, within)
	case <-ctx.Done():
		return device.Result{}, ctx.Err()
	}
}

func (b *Client) register(name string, arguments map[string]any) (xiaozhi.Request, <-chan xiaozhi.Response, error) {
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

func (b *Client) forget(id int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.calls, id)
}

// Close fails every call that waits, and frees the memory. It is called once.
func (b *Client) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgetFresh()
	b.limit.release(b.held)
	b.held = 0
	b.closed = true
	b.endList()
	for id, answer := range b.calls {
		close(answer)
		delete(b.calls, id)
	}
}

// StatusTool ends the name of the tool with which every build reports its condition.
const StatusTool = "get_device_status"

// ParseStatus returns the condition in the answer of a tool, if it is the tool that reports it.
func ParseStatus(tool, answer string) (event.RobotStatus, bool) {
	if !strings.HasSuffix(tool, StatusTool) {
		return event.RobotStatus{}, false
	}
	status, err := device.ParseStatus(answer)
	return event.RobotStatus{
		Volume: status.Volume, Brightness: status.Brightness, Battery: status.Battery, Charging: status.Charging, Signal: status.Signal,
	}, err == nil
}
