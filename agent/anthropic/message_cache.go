package anthropic

import (
	"slices"
	"sync"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"perch/agent/thinker"
	"perch/limit"
)

// mostCached bounds the cached messages: the rounds of a few concurrent turns.
const mostCached = 64

// messageCache holds the latest messages with thinking and calls, unchanged. New
// messages evict the oldest; an evicted message is sent without its thinking, which
// only costs quality.
type messageCache struct {
	mu    sync.Mutex
	all   []cachedMessage
	bytes int
}

type cachedMessage struct {
	calls []string // that the model was offered
	param sdk.MessageParam
	tools []sdk.ToolUnionParam // that it was offered
	bytes int
}

func (c *messageCache) add(calls []thinker.ToolCall, m sdk.Message, tools []sdk.ToolUnionParam) {
	one := cachedMessage{calls: ids(calls), param: m.ToParam(), tools: tools}
	for _, block := range m.Content {
		one.bytes += len(block.RawJSON())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, one)
	c.bytes += one.bytes
	for len(c.all) > mostCached || c.bytes > limit.Message {
		c.bytes -= c.all[0].bytes
		c.all = slices.Delete(c.all, 0, 1)
	}
}

// lookup returns the message with exactly these calls.
func (c *messageCache) lookup(calls []thinker.ToolCall) (cachedMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := ids(calls)
	for _, one := range slices.Backward(c.all) {
		if slices.Equal(one.calls, wanted) {
			return one, true
		}
	}
	return cachedMessage{}, false
}

// clear empties the cache and reports whether it held anything.
func (c *messageCache) clear() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	had := len(c.all) > 0
	c.all, c.bytes = nil, 0
	return had
}

func ids(calls []thinker.ToolCall) []string {
	var all []string
	for _, c := range calls {
		all = append(all, c.ID)
	}
	return all
}
