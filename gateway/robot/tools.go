package robot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
)

// Errors of a call to a robot's tool.
var (
	// ErrNoTool is returned for a tool the robot does not list.
	ErrNoTool = errors.New("the robot has no such tool")
	// ErrToolTimeout is returned where a robot does not answer in time.
	ErrToolTimeout = errors.New("the robot did not answer the call in time")
	// ErrChannelClosed is returned where the channel closed before the answer.
	ErrChannelClosed = errors.New("the robot's channel is closed")
)

// callTimeout is for an ordinary tool. They run on the robot's main loop and
// answer within milliseconds.
const callTimeout = 10 * time.Second

// mostTools and mostPages bound what a robot can make us remember.
const (
	mostTools = 200
	mostPages = 50
)

// toolbox is the client of the robot's MCP server: it asks for the list of
// tools, page by page, and matches answers to calls by number.
type toolbox struct {
	send func(xiaozhi.Request) error

	mu      sync.Mutex
	nextID  int
	calls   map[int]chan xiaozhi.Response
	listing int // id of the page asked for
	pages   int
	fresh   []device.Tool // of the list being read
	tools   []device.Tool
	closed  bool
}

// newToolbox begins with the tools known from an earlier session.
func newToolbox(known []device.Tool, send func(xiaozhi.Request) error) *toolbox {
	return &toolbox{send: send, tools: known, calls: map[int]chan xiaozhi.Response{}}
}

// start introduces us and asks for the first page of tools. The firmware
// reads nothing of initialize but the vision address, which comes later.
func (b *toolbox) start(version string) error {
	b.mu.Lock()
	b.nextID++
	hello := xiaozhi.Request{ID: b.nextID, Method: "initialize", Params: map[string]any{
		"protocolVersion": "2024-11-05",
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "perch", "version": version},
	}}
	b.fresh, b.pages = nil, 0
	list := b.page("")
	b.mu.Unlock()
	for _, r := range []xiaozhi.Request{hello, {Method: "notifications/initialized"}, list} {
		if err := b.send(r); err != nil {
			return err
		}
	}
	return nil
}

// page is the request for the page that begins with the tool named cursor.
func (b *toolbox) page(cursor string) xiaozhi.Request {
	b.nextID++
	b.listing = b.nextID
	b.pages++
	return xiaozhi.Request{ID: b.nextID, Method: "tools/list", Params: map[string]any{"cursor": cursor, "withUserTools": false}}
}

// deliver takes a response. It reports the whole list once its last page is in.
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
		answer <- r // has room for it
	}
	return nil, nil
}

func (b *toolbox) listed(r xiaozhi.Response) (next *xiaozhi.Request, listed []device.Tool, err error) {
	b.listing = 0
	if r.Error != nil {
		return nil, nil, fmt.Errorf("tools/list: %w", r.Error)
	}
	var page struct {
		Tools      []device.Tool `json:"tools"`
		NextCursor string        `json:"nextCursor"`
	}
	if err := json.Unmarshal(r.Result, &page); err != nil {
		return nil, nil, fmt.Errorf("tools/list: %w", err)
	}
	for _, t := range page.Tools {
		if len(b.fresh) < mostTools && len(t.Name) <= mostName {
			t.Description = clip(t.Description, mostData)
			b.fresh = append(b.fresh, t)
		}
	}
	if page.NextCursor != "" && b.pages < mostPages && len(b.fresh) < mostTools {
		request := b.page(page.NextCursor)
		return &request, nil, nil
	}
	b.tools, b.fresh = b.fresh, nil
	return nil, b.tools, nil
}

// Tools are those the robot lists, or listed last time.
func (b *toolbox) Tools() []device.Tool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tools
}

// Call runs a tool and returns what it answered.
func (b *toolbox) Call(ctx context.Context, name string, arguments map[string]any) (device.Result, error) {
	if arguments == nil {
		arguments = map[string]any{}
	}
	request, answer, err := b.register(name, arguments)
	if err != nil {
		return device.Result{}, err
	}
	defer b.drop(request.ID)
	if err := b.send(request); err != nil {
		return device.Result{}, err
	}
	timer := time.NewTimer(callTimeout)
	defer timer.Stop()
	select {
	case r, open := <-answer:
		if !open {
			return device.Result{}, ErrChannelClosed
		}
		return result(name, r)
	case <-timer.C:
		return device.Result{}, fmt.Errorf("%w: %s after %s", ErrToolTimeout, name, callTimeout)
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
	if _, listed := device.FindTool(b.tools, name); !listed {
		return xiaozhi.Request{}, nil, fmt.Errorf("%w: %s", ErrNoTool, name)
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

// close fails every call that waits.
func (b *toolbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for id, answer := range b.calls {
		close(answer)
		delete(b.calls, id)
	}
}

// result reads a call's result. The firmware reports failures as errors of the
// request, never in the result; an image is JSON in a string of its own.
func result(name string, r xiaozhi.Response) (device.Result, error) {
	if r.Error != nil {
		return device.Result{}, fmt.Errorf("%s: %w", name, r.Error)
	}
	var body struct {
		Content []struct {
			Type  string `json:"type"`
			Text  string `json:"text"`
			Image string `json:"image"`
		} `json:"content"`
	}
	if err := json.Unmarshal(r.Result, &body); err != nil {
		return device.Result{}, fmt.Errorf("%s: %w", name, err)
	}
	var found device.Result
	var texts []string
	for _, c := range body.Content {
		switch c.Type {
		case "text":
			texts = append(texts, c.Text)
		case "image":
			var image struct {
				Type string `json:"mimeType"`
				Data []byte `json:"data"`
			}
			if err := json.Unmarshal([]byte(c.Image), &image); err != nil {
				return device.Result{}, fmt.Errorf("%s: its image: %w", name, err)
			}
			found.Pictures = append(found.Pictures, device.Picture{Type: image.Type, Data: image.Data})
		}
	}
	found.Text = strings.Join(texts, "\n")
	return found, nil
}
