package assist

import (
	"sync"
	"time"

	"perch/limit"
)

// idle is how long Home Assistant keeps a conversation that rests.
const idle = 5 * time.Minute

// talks maps conversations to Home Assistant's ids.
type talks struct {
	now func() time.Time

	mu             sync.Mutex
	byConversation map[string]talk
}

type talk struct {
	id   string
	used time.Time
}

// id returns the conversation's id, or "" for a new conversation.
func (k *talks) id(conversation string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.byConversation[conversation]
	if k.now().Sub(t.used) >= idle {
		delete(k.byConversation, conversation)
		return ""
	}
	return t.id
}

// store records the id of a turn's answer, which is a new one if Home Assistant no
// longer knew the old one.
func (k *talks) store(conversation, id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if id == "" || len(id) > limit.Name {
		delete(k.byConversation, conversation)
		return
	}
	if _, known := k.byConversation[conversation]; !known && len(k.byConversation) >= limit.Talks {
		delete(k.byConversation, limit.First(k.byConversation, func(a, b talk) int { return a.used.Compare(b.used) }))
	}
	k.byConversation[conversation] = talk{id, k.now()}
}

func (k *talks) forget(conversation string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byConversation, conversation)
}
