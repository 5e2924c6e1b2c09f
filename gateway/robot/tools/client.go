// Package tools is the client of a robot's MCP server (Model Context Protocol): it lists the robot's tools
// and calls them. Package robot uses one client for each WebSocket channel and each MQTT connection.
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

// Tools run on the robot's main loop and respond within milliseconds, unless they transfer a picture or a
// file over the network. The firmware waits up to 30 s for the description of a picture.
const (
	callTimeout     = 10 * time.Second
	slowCallTimeout = 45 * time.Second
)

// timeout returns how long to wait for the response of a tool. It waits longer for a tool with a word such as
// "photo" in its name, because the tool may transfer a picture or a file.
func timeout(tool string) time.Duration {
	for _, slow := range []string{"photo", "camera", "snapshot", "image", "upgrade", "download"} {
		if strings.Contains(strings.ToLower(tool), slow) {
			return slowCallTimeout
		}
	}
	return callTimeout
}

// Limits of a robot's list of tools.
const (
	MaxTools = 200 // tools that are kept
	maxPages = 50  // pages that are requested
)

// Budget bounds the memory for the tools of several clients together. It counts bytes of JSON.
type Budget struct{ left atomic.Int64 }

// NewBudget returns a budget of the given number of bytes.
func NewBudget(bytes int64) *Budget {
	b := &Budget{}
	b.left.Store(bytes)
	return b
}

// reserve takes bytes from the budget, or returns false if too few are left.
func (b *Budget) reserve(bytes int) bool {
	if b.left.Add(-int64(bytes)) >= 0 {
		return true
	}
	b.release(bytes)
	return false
}

// release gives bytes back.
func (b *Budget) release(bytes int) { b.left.Add(int64(bytes)) }

// Client reads a robot's list of tools, page by page, and calls tools. It matches responses to calls by
// the request ID. It is safe for concurrent use.
type Client struct {
	send   func(xiaozhi.Request) error
	budget *Budget

	mu     sync.Mutex
	nextID int                           // ID of the latest request
	calls  map[int]chan xiaozhi.Response // calls that wait for a response, by request ID
	tools  []device.Tool                 // the robot's tools
	held   int                           // bytes reserved from budget for tools
	closed bool

	// The list being read.
	listing    int           // ID of the request for a page; 0 if no page is requested
	pages      int           // pages requested
	fresh      []device.Tool // tools read so far
	freshBytes int           // bytes reserved from budget for fresh
	omitted    int           // tools left out; see Omitted
	ended      chan struct{} // closed once the list is complete or has failed; nil if no list is being read
}

// New returns a client that sends requests with send. Until the client has read the robot's list, Tools
// returns listedBefore, the robot's list from an earlier session, which does not count against the budget.
func New(listedBefore []device.Tool, b *Budget, send func(xiaozhi.Request) error) *Client {
	return &Client{send: send, budget: b, tools: listedBefore, calls: map[int]chan xiaozhi.Response{}}
}

// Introduce sends an initialize request with the appliance's name, and with the URL and the token for the
// camera's pictures unless the URL is empty. The firmware reads only the URL and the token, and accepts the
// request at any time, also repeatedly.
func (c *Client) Introduce(version, visionURL, visionToken string) error {
	capabilities := map[string]any{}
	if visionURL != "" {
		capabilities["vision"] = map[string]any{"url": visionURL, "token": visionToken}
	}
	c.mu.Lock()
	c.nextID++
	initialize := xiaozhi.Request{ID: c.nextID, Method: "initialize", Params: map[string]any{
		"protocolVersion": "2024-11-05",
		"capabilities":    capabilities,
		"clientInfo":      map[string]any{"name": "perch", "version": version},
	}}
	c.mu.Unlock()
	if err := c.send(initialize); err != nil {
		return err
	}
	return c.send(xiaozhi.Request{Method: "notifications/initialized"})
}

// RequestList requests the first page of the list of tools. Deliver requests the other pages. A list that is
// still being read is discarded.
func (c *Client) RequestList() error {
	c.mu.Lock()
	c.dropFresh()
	c.pages, c.omitted = 0, 0
	c.endList()
	c.ended = make(chan struct{})
	first := c.nextPage("")
	c.mu.Unlock()
	return c.send(first)
}

// endList wakes AwaitList. c.mu must be held.
func (c *Client) endList() {
	if c.ended != nil {
		close(c.ended)
		c.ended = nil
	}
}

// firstListTimeout is how long AwaitList waits at most. The wait delays the answer to the first utterance.
const firstListTimeout = time.Second

// AwaitList waits until the list being read is complete or has failed, if no tools of the robot are known
// yet: somebody may speak to a new robot before the robot has listed its tools.
func (c *Client) AwaitList(ctx context.Context) {
	c.mu.Lock()
	ended, hasTools := c.ended, len(c.tools) > 0
	c.mu.Unlock()
	if ended == nil || hasTools {
		return
	}
	wait, cancel := context.WithTimeout(ctx, firstListTimeout)
	defer cancel()
	select {
	case <-ended:
	case <-wait.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ended == ended && ctx.Err() == nil {
			c.endList() // later calls do not wait for a robot that does not respond
		}
	}
}

// dropFresh drops the tools of the list being read. c.mu must be held.
func (c *Client) dropFresh() {
	c.budget.release(c.freshBytes)
	c.fresh, c.freshBytes = nil, 0
}

// nextPage returns the request for the page at a cursor, and counts it. c.mu must be held.
func (c *Client) nextPage(cursor string) xiaozhi.Request {
	c.nextID++
	c.listing = c.nextID
	c.pages++
	return xiaozhi.Request{ID: c.nextID, Method: "tools/list", Params: map[string]any{"cursor": cursor, "withUserTools": true}}
}

// Deliver handles a response of the robot. When the response completes the list, Deliver returns all
// tools. If a page fails, Deliver returns an error and the tools of the pages before it. In all other cases
// listed is nil. Deliver also returns an error if the response is invalid, or if the next page cannot be requested.
func (c *Client) Deliver(payload json.RawMessage) (listed []device.Tool, err error) {
	r, err := xiaozhi.ParseResponse(payload)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.listing != 0 && r.ID == c.listing {
		next, listed, err := c.handlePage(r)
		c.mu.Unlock()
		if next != nil {
			return nil, c.send(*next)
		}
		return listed, err
	}
	response, found := c.calls[r.ID]
	delete(c.calls, r.ID)
	c.mu.Unlock()
	if found {
		response <- r // does not block: buffered for the only response
	}
	return nil, nil
}

// listedTool is a tool in the robot's list.
type listedTool struct {
	device.Tool
	Annotations struct {
		Audience []string `json:"audience"`
	} `json:"annotations"`
}

// handlePage handles a page of the list. It returns the request for the next page, or after the last page
// all tools. c.mu must be held.
func (c *Client) handlePage(r xiaozhi.Response) (next *xiaozhi.Request, listed []device.Tool, err error) {
	c.listing = 0
	defer func() {
		if next == nil {
			c.endList()
		}
	}()
	var page struct {
		Tools      []listedTool `json:"tools"`
		NextCursor string       `json:"nextCursor"`
	}
	// The firmware responds with an error if the first tool of the page is too large for a page.
	failed := error(r.Error)
	if r.Error == nil {
		failed = json.Unmarshal(r.Result, &page)
	}
	if failed != nil {
		if len(c.fresh) > 0 {
			c.replaceTools()
			listed = c.tools
		}
		return nil, listed, fmt.Errorf("tools/list, page %d: %w", c.pages, failed)
	}
	for _, t := range page.Tools {
		t.Description = plain.Clip(t.Description, limit.Data)
		t.UserOnly = len(t.Annotations.Audience) > 0 && !slices.Contains(t.Annotations.Audience, "assistant")
		encoded, err := json.Marshal(t.Tool)
		size := len(encoded) + len(",")
		fits := len("[]")+c.freshBytes+size <= limit.Body && len(c.fresh) < MaxTools
		if err != nil || !fits || len(t.Name) > limit.Name || t.Name == "" || !c.budget.reserve(size) {
			c.omitted++
			continue
		}
		c.freshBytes += size
		c.fresh = append(c.fresh, t.Tool)
	}
	if page.NextCursor != "" && c.pages < maxPages && len(c.fresh) < MaxTools {
		request := c.nextPage(page.NextCursor)
		return &request, nil, nil
	}
	c.replaceTools()
	return nil, c.tools, nil
}

// replaceTools replaces the robot's tools with the tools of the list just read. c.mu must be held.
func (c *Client) replaceTools() {
	c.budget.release(c.held)
	c.tools, c.held = c.fresh, c.freshBytes
	c.fresh, c.freshBytes = nil, 0
}

// Omitted returns how many tools on the pages read of the latest list were left out, because of a limit or
// because they have no name.
func (c *Client) Omitted() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.omitted
}

// Tools returns the tools of the latest list that the client has read, or of an earlier session before
// that. The caller must not change them.
func (c *Client) Tools() []device.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools
}

// Call runs a tool and waits for its result. It first fits the arguments to the tool's schema, because the
// firmware silently ignores arguments that it does not know. The error of Call wraps an error of this
// package, device.ErrArguments, the error of sending, or ctx's error.
func (c *Client) Call(ctx context.Context, name string, arguments map[string]any) (device.Result, error) {
	tool, listed := device.FindTool(c.Tools(), name)
	if !listed {
		return device.Result{}, Failed(ErrNoTool, "%s", plain.Clip(name, limit.Name))
	}
	fitted, err := tool.Fit(arguments)
	if err != nil {
		return device.Result{}, err
	}
	request, response, err := c.newCall(name, fitted)
	if err != nil {
		return device.Result{}, err
	}
	defer c.removeCall(request.ID)
	if err := c.send(request); err != nil {
		return device.Result{}, err
	}
	within := timeout(name)
	select {
	case r, open := <-response:
		if !open {
			return device.Result{}, ErrChannelClosed
		}
		return parseResult(name, r)
	case <-time.After(within):
		return device.Result{}, Failed(ErrToolTimeout, "%s after %s", name, within)
	case <-ctx.Done():
		return device.Result{}, ctx.Err()
	}
}

// newCall returns the request of a call, and a channel that receives the response or is closed by Close. It
// returns ErrChannelClosed after Close.
func (c *Client) newCall(name string, arguments map[string]any) (xiaozhi.Request, <-chan xiaozhi.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return xiaozhi.Request{}, nil, ErrChannelClosed
	}
	c.nextID++
	response := make(chan xiaozhi.Response, 1)
	c.calls[c.nextID] = response
	params := map[string]any{"name": name, "arguments": arguments}
	return xiaozhi.Request{ID: c.nextID, Method: "tools/call", Params: params}, response, nil
}

// removeCall removes a call that no longer waits for a response.
func (c *Client) removeCall(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// Close makes all waiting calls fail, and releases the budget. It must be called once.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropFresh()
	c.budget.release(c.held)
	c.held = 0
	c.closed = true
	c.endList()
	for id, response := range c.calls {
		close(response)
		delete(c.calls, id)
	}
}

// StatusTool is the suffix of the name of the tool with which all firmware builds report their status.
const StatusTool = "get_device_status"

// ParseStatus returns the robot's status in the result of a tool. It returns false if the tool is not a
// StatusTool, or if its result is invalid.
func ParseStatus(tool, result string) (event.RobotStatus, bool) {
	if !strings.HasSuffix(tool, StatusTool) {
		return event.RobotStatus{}, false
	}
	status, err := device.ParseStatus(result)
	return event.RobotStatus{
		Volume: status.Volume, Brightness: status.Brightness, Battery: status.Battery, Charging: status.Charging, Signal: status.Signal,
	}, err == nil
}
