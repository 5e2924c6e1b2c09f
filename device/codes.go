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
	// ErrCode reports a code that was never issued, was used, or has expired. It is an ErrNothingToAdopt.
	ErrCode = fmt.Errorf("%w, or not any more: a code is good for ten minutes, and then the robot shows another", ErrNothingToAdopt)
	// ErrTries reports that too many wrong codes were tried; no code is accepted for a while.
	ErrTries = errors.New("too many wrong codes; wait a minute, or adopt the robot by its id")
)

// Limits of adoption codes.
const (
	CodeLife = 10 * time.Minute // from its first issue

	codes       = 1_000_000 // number of six-digit codes
	mostCodes   = 200       // valid at a time
	mostOfOneID = 4         // valid at a time under one id
	mostTries   = 10        // wrong codes tried within
	triesWithin = time.Minute
)

// Codes issues the six-digit codes that robots show for adoption. A code can be used
// once, for CodeLife, for one robot with one client. Codes is not safe for concurrent
// use; the caller passes the time.
type Codes struct {
	live  map[string]shown
	of    map[asker]string
	wrong []time.Time // times of the latest wrong tries
}

// asker identifies to whom a code is shown: a robot, from one machine. A client that
// claims a robot's MAC from elsewhere does not affect the code that the robot shows.
type asker struct {
	robot   ID
	machine netip.Prefix
}

// shown is what an issued code stands for.
type shown struct {
	asker
	client Client
	until  time.Time
}

// NewCodes returns an empty Codes.
func NewCodes() *Codes {
	return &Codes{live: map[string]shown{}, of: map[asker]string{}}
}

// Issue returns the code that a robot is to show: the same for half of its life, and
// then another. Another client with the robot's MAC gets another code, which
// replaces the first only if both come from one machine. It reports false while too
// many codes are valid; such a robot is adopted by its id. The address may be empty.
func (c *Codes) Issue(robot ID, client Client, address string, now time.Time) (code string, ok bool) {
	from, _ := originOf(address)
	who := asker{robot, from.machine}
	c.expire(now)
	if code, has := c.of[who]; has {
		if s := c.live[code]; s.client == client && s.until.Sub(now) > CodeLife/2 {
			return code, true
		}
		c.drop(code)
	}
	same := 0
	for a := range c.of {
		if a.robot == robot {
			same++
		}
	}
	if len(c.live) >= mostCodes || same >= mostOfOneID {
		return "", false
	}
	for taken := true; taken; _, taken = c.live[code] {
		n, _ := rand.Int(rand.Reader, big.NewInt(codes)) // never fails
		code = fmt.Sprintf("%06d", n)
	}
	c.live[code], c.of[who] = shown{who, client, now.Add(CodeLife)}, code
	return code, true
}

// lookup returns the robot and client that the code was issued to. It counts wrong
// codes. Errors are ErrCode and ErrTries.
func (c *Codes) lookup(code string, now time.Time) (ID, Client, error) {
	c.expire(now)
	for len(c.wrong) > 0 && now.Sub(c.wrong[0]) >= triesWithin {
		c.wrong = c.wrong[1:]
	}
	if len(c.wrong) >= mostTries {
		return "", Client{}, ErrTries
	}
	s, good := c.live[code]
	if !good {
		c.wrong = append(c.wrong, now)
		return "", Client{}, ErrCode
	}
	return s.robot, s.client, nil
}

// current returns the valid code of a robot with a client, or "".
func (c *Codes) current(robot ID, client Client, now time.Time) string {
	for code, s := range c.live {
		if s.robot == robot && s.client == client && now.Before(s.until) {
			return code
		}
	}
	return ""
}

// revoke revokes all codes of a robot.
func (c *Codes) revoke(robot ID) {
	for code, s := range c.live {
		if s.robot == robot {
			c.drop(code)
		}
	}
}

func (c *Codes) drop(code string) {
	delete(c.of, c.live[code].asker)
	delete(c.live, code)
}

func (c *Codes) expire(now time.Time) {
	for code, s := range c.live {
		if !now.Before(s.until) {
			c.drop(code)
		}
	}
}
