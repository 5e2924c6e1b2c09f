package device

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"time"
)

// Errors of adoption codes.
var (
	// ErrCode is returned for a code that was never issued, was used, replaced or revoked, or has expired. It
	// wraps ErrNothingToAdopt.
	ErrCode = fmt.Errorf("%w, or not any more: a code is good for ten minutes, and then the robot shows another", ErrNothingToAdopt)
	// ErrTries is returned for any code if there were maxTries wrong codes within the last tryPeriod.
	ErrTries = errors.New("too many wrong codes; wait a minute, or adopt the robot by its id")
)

// Limits of adoption codes.
const (
	CodeLife = 10 * time.Minute // how long a code is valid

	codes         = 1_000_000 // number of six-digit codes
	maxCodes      = 200       // maximum number of valid codes
	maxRobotCodes = 4         // maximum number of valid codes of one robot
	maxTries      = 10        // maximum number of wrong codes within tryPeriod
	tryPeriod     = time.Minute
)

// Codes issues the six-digit codes that robots show for adoption. A code is valid for CodeLife, for
// one robot and one client, and can be used once. Codes is not safe for concurrent use.
type Codes struct {
	valid  map[string]issued    // key: code
	codeOf map[recipient]string // the valid code of each recipient
	tries  []time.Time          // times of wrong codes within tryPeriod, oldest first
}

// recipient identifies the robot that shows a code, and the host (see origin) of the robot's
// check-in. Clients that check in with the robot's MAC address from other hosts get their own codes, so these
// clients do not replace the code on the robot's screen.
type recipient struct {
	robot ID
	host  netip.Prefix
}

// issued describes a valid code.
type issued struct {
	recipient
	client Client
	until  time.Time // when the code expires
}

// NewCodes returns an empty Codes.
func NewCodes() *Codes {
	return &Codes{valid: map[string]issued{}, codeOf: map[recipient]string{}}
}

// Issue returns the code that a robot shows. Repeated calls return the same code for half of CodeLife,
// and then a new one, which replaces the old one. A client with another Client-Id also gets a new code,
// which replaces the previous code only if both clients are on the same host. Issue returns false if there
// are maxCodes valid codes, or maxRobotCodes for this robot; the owner can then adopt the robot by its ID.
// address is an IP address, or empty if it is unknown.
func (c *Codes) Issue(robot ID, client Client, address string, now time.Time) (code string, ok bool) {
	from, _ := originOf(address)
	to := recipient{robot, from.host}
	c.expire(now)
	if code, ok := c.codeOf[to]; ok {
		if i := c.valid[code]; i.client == client && i.until.Sub(now) > CodeLife/2 {
			return code, true
		}
		c.remove(code)
	}
	robotCodes := 0
	for r := range c.codeOf {
		if r.robot == robot {
			robotCodes++
		}
	}
	if len(c.valid) >= maxCodes || robotCodes >= maxRobotCodes {
		return "", false
	}
	for taken := true; taken; _, taken = c.valid[code] {
		n, _ := rand.Int(rand.Reader, big.NewInt(codes)) // never fails
		code = fmt.Sprintf("%06d", n)
	}
	c.valid[code], c.codeOf[to] = issued{to, client, now.Add(CodeLife)}, code
	return code, true
}

// lookup returns the robot and the client that a code was issued to. It returns ErrCode for a wrong
// code, and ErrTries after too many wrong codes.
func (c *Codes) lookup(code string, now time.Time) (ID, Client, error) {
	c.expire(now)
	for len(c.tries) > 0 && now.Sub(c.tries[0]) >= tryPeriod {
		c.tries = c.tries[1:]
	}
	if len(c.tries) >= maxTries {
		return "", Client{}, ErrTries
	}
	i, ok := c.valid[code]
	if !ok {
		c.tries = append(c.tries, now)
		return "", Client{}, ErrCode
	}
	return i.robot, i.client, nil
}

// current returns the valid code of a robot and a client, or "" if none exists.
func (c *Codes) current(robot ID, client Client, now time.Time) string {
	for code, i := range c.valid {
		if i.robot == robot && i.client == client && now.Before(i.until) {
			return code
		}
	}
	return ""
}

// revoke invalidates all codes of a robot.
func (c *Codes) revoke(robot ID) {
	for code, i := range c.valid {
		if i.robot == robot {
			c.remove(code)
		}
	}
}

// remove invalidates a code.
func (c *Codes) remove(code string) {
	delete(c.codeOf, c.valid[code].recipient)
	delete(c.valid, code)
}

func (c *Codes) expire(now time.Time) {
	for code, i := range c.valid {
		if !now.Before(i.until) {
			c.remove(code)
		}
	}
}
