package device

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"time"
)

// Errors of codes.
var (
	// ErrCode is an ErrNothingToAdopt, for a code that was never given, that was used, or that has expired.
	ErrCode = fmt.Errorf("%w, or not any more: a code is good for ten minutes, and then the robot shows another", ErrNothingToAdopt)
	// ErrTries is returned for any code while too many wrong ones come.
	ErrTries = errors.New("too many wrong codes; wait a minute, or adopt the robot by its id")
)

// Bounds of codes.
const (
	CodeLife = 10 * time.Minute // from when it is first given

	codes       = 1_000_000 // there are, of six digits
	mostCodes   = 200       // good at a time,
	mostOfOneID = 4         // and of them under one id
	mostTries   = 10        // wrong ones within
	triesWithin = time.Minute
)

// Codes gives out the six digits that a robot shows for its adoption. A code is
// good once, for a time, for one robot with one client. One goroutine at a time uses
// it; the time is the caller's.
type Codes struct {
	live  map[string]shown
	of    map[asker]string
	wrong []time.Time // the latest wrong tries
}

// asker is who is shown a code: a robot, from one machine. A client that claims a
// robot's MAC from elsewhere takes nothing from the code that the robot shows.
type asker struct {
	robot   ID
	machine netip.Prefix
}

// shown is what a code stands for.
type shown struct {
	asker
	client Client
	until  time.Time
}

// NewCodes returns codes, of which none has been given.
func NewCodes() *Codes {
	return &Codes{live: map[string]shown{}, of: map[asker]string{}}
}

// Give returns the code that a robot is to show: the same for half of its life, and
// then another. Another client with the robot's MAC gets another code, which ends
// the first only if both come from one machine. There is none while too many wait;
// such a robot is adopted by its id. The address may be unknown.
func (c *Codes) Give(robot ID, client Client, address string, now time.Time) (code string, ok bool) {
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
		n, _ := rand.Int(rand.Reader, big.NewInt(codes)) // it never fails
		code = fmt.Sprintf("%06d", n)
	}
	c.live[code], c.of[who] = shown{who, client, now.Add(CodeLife)}, code
	return code, true
}

// look returns whom a code was given to, which stays so until the code ends. A
// wrong one counts. Errors are ErrCode and ErrTries.
func (c *Codes) look(code string, now time.Time) (ID, Client, error) {
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

// current returns the good code of a robot with a client, or nothing.
func (c *Codes) current(robot ID, client Client, now time.Time) string {
	for code, s := range c.live {
		if s.robot == robot && s.client == client && now.Before(s.until) {
			return code
		}
	}
	return ""
}

// end makes a robot's codes void, wherever they are shown.
func (c *Codes) end(robot ID) {
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
