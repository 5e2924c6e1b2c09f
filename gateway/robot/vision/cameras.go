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

// Path is the path that robots upload pictures to.
const Path = "/xiaozhi/vision/explain"

// tokenTTL is how long a camera token is valid. A session gets a new token every half hour, and a robot that is
// connected by MQTT without a session gets one every ten minutes.
const tokenTTL = time.Hour

// maxStoredBytes is the maximum total size of the stored pictures.
const maxStoredBytes = 8 * limit.Message

// cameras holds the tokens of robots' cameras, and the latest picture of each camera. Both are in memory
// only.
type cameras struct {
	mu       sync.Mutex
	tokens   map[[sha256.Size]byte]camera // holders of valid tokens, by hash of the token
	pictures map[device.ID]device.Picture
	order    []device.ID // robots whose picture is stored; the robot with the oldest picture is first
	bytes    int         // total size of the stored pictures
}

// camera is the holder of a token: a robot, and the session that the token was issued for.
type camera struct {
	robot   device.ID
	session string
	expires time.Time
	renewed bool // the session has a newer token
}

// Issue returns the URL for a robot's pictures, and a new token. The session's previous token stays valid,
// because the robot may be using it for an upload; older tokens of the session become invalid. If the URL
// under which the robot reaches the appliance is unknown, Issue returns two empty strings.
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
		case issued.session == session:
			issued.renewed = true
			c.tokens[t] = issued
		}
	}
	token = rand.Text()
	c.tokens[sha256.Sum256([]byte(token))] = camera{robot: r.ID, session: session, expires: now.Add(tokenTTL)}
	return r.BaseURL + Path, token
}

// Revoke makes the tokens of a session invalid.
func (c *cameras) Revoke(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.tokens, func(_ [sha256.Size]byte, issued camera) bool { return issued.session == session })
}

// Picture returns the latest picture of a robot's camera, or false if none is stored.
func (c *cameras) Picture(id device.ID) (device.Picture, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pictures[id]
	return p, ok
}

// holder returns the holder of a token, or false if the token is not valid. It looks up the hash of the
// token, so that the duration of the look-up does not show how much of a guessed token is right.
func (c *cameras) holder(token string, now time.Time) (camera, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	issued, ok := c.tokens[sha256.Sum256([]byte(token))]
	return issued, ok && now.Before(issued.expires)
}

// store stores a robot's picture in place of its earlier one. It drops the oldest pictures of other robots
// to make room.
func (c *cameras) store(id device.ID, p device.Picture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(id)
	for len(c.order) > 0 && c.bytes+len(p.Data) > maxStoredBytes {
		c.drop(c.order[0])
	}
	c.pictures[id], c.order, c.bytes = p, append(c.order, id), c.bytes+len(p.Data)
}

// drop drops the picture of a robot, if there is one. c.mu must be held.
func (c *cameras) drop(id device.ID) {
	c.bytes -= len(c.pictures[id].Data)
	delete(c.pictures, id)
	c.order = slices.DeleteFunc(c.order, func(o device.ID) bool { return o == id })
}
