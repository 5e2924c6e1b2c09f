package vision

import (
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"perch/device"
	"perch/limit"
)

// Path is where robots send pictures.
const Path = "/xiaozhi/vision/explain"

// tokenLives is how long a camera's token is valid. Sessions renew it twice as often.
const tokenLives = time.Hour

// mostStored bounds the pictures that are stored, in bytes.
const mostStored = 8 * limit.Message

// cameras are the robots that may send pictures, and the last picture of each, in memory only.
type cameras struct {
	mu       sync.Mutex
	tokens   map[[sha256.Size]byte]camera // by the hash of the token
	pictures map[device.ID]device.Picture
	oldest   []device.ID // of pictures, in the order they came
	bytes    int         // of pictures
}

// camera is to whom a token was given.
type camera struct {
	robot   device.ID
	session string
	expires time.Time
	renewed bool // the session has a newer one
}

// Issue returns the address that a robot sends pictures to, and a token for it. Of the session's
// earlier tokens only the latest stays valid. Both are empty if the address under which the robot
// reaches us is unknown.
func (c *cameras) Issue(r device.Robot, session string, now time.Time) (url, token string) {
	if r.BaseURL == "" {
		return "", ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for t, issued := range c.tokens {
		switch {
		case now.After(issued.expires), issued.session == session && issued.renewed:
			delete(c.tokens, t)
		case issued.session == session: // a picture may be on its way with it
			issued.renewed = true
			c.tokens[t] = issued
		}
	}
	token = rand.Text()
	c.tokens[sha256.Sum256([]byte(token))] = camera{robot: r.ID, session: session, expires: now.Add(tokenLives)}
	return r.BaseURL + Path, token
}

// Revoke ends the tokens of a session.
func (c *cameras) Revoke(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.tokens, func(_ [sha256.Size]byte, issued camera) bool { return issued.session == session })
}

// Picture returns the last picture of a robot's camera.
func (c *cameras) Picture(id device.ID) (device.Picture, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pictures[id]
	return p, ok
}

// holder returns to whom a token was given. It looks up the hash: the time that takes does not
// show how much of a guess is right.
func (c *cameras) holder(token string, now time.Time) (camera, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	issued, known := c.tokens[sha256.Sum256([]byte(token))]
	return issued, known && now.Before(issued.expires)
}

// store stores a robot's picture in place of its last, and drops the oldest of others for it.
func (c *cameras) store(id device.ID, p device.Picture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(id)
	for len(c.oldest) > 0 && c.bytes+len(p.Data) > mostStored {
		c.drop(c.oldest[0])
	}
	c.pictures[id], c.oldest, c.bytes = p, append(c.oldest, id), c.bytes+len(p.Data)
}

func (c *cameras) drop(id device.ID) {
	c.bytes -= len(c.pictures[id].Data)
	delete(c.pictures, id)
	c.oldest = slices.DeleteFunc(c.oldest, func(o device.ID) bool { return o == id })
}
