package device

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"perch/plain"
)

// Anybody can check in with a robot's MAC. Several clients that do are all kept,
// within mostClaims, and which of them is the robot is for its owner to say, by
// the code on its screen or by naming one: its id alone adopts none of them.

// mostClaims bounds the clients that wait under one id.
const mostClaims = 8

// Errors of adoption by an id that more than one client has claimed. Those that
// are returned are ClaimErrors, which list the clients.
var (
	// ErrContested is wrapped for a robot that is not adopted, by whose MAC two or more clients have named themselves.
	ErrContested = errors.New("more than one client names itself by this MAC address, and any of them may be a stranger's. " +
		"Adopt the robot by the code on its screen, or name the client that is yours by its Client-Id or its address (--client, or client in a request)")
	// ErrClaimed is wrapped for an adopted robot with whose MAC another client waits.
	ErrClaimed = errors.New("this robot is adopted already, and another client waits that names itself by the same MAC address. " +
		"If you erased the robot's flash, adopt it by the code on its screen, or name the client that is yours by its Client-Id or its " +
		"address (--client, or client in a request)")
	// ErrNotAmongThem is wrapped for the name of a client that has not claimed the robot. It is an ErrNothingToAdopt.
	ErrNotAmongThem = fmt.Errorf("%w: no client with this Client-Id or address names itself by the robot's MAC address", ErrNothingToAdopt)
	// ErrAmbiguous is wrapped for an address from which two or more clients came.
	ErrAmbiguous = errors.New("more than one client came from this address; name the one that is yours by its Client-Id")
)

// ClaimError is an error of adoption that lists the clients that claim the robot.
type ClaimError struct {
	Err       error // ErrContested, ErrClaimed, ErrNotAmongThem or ErrAmbiguous
	Claimants []Claimant
	Unlisted  bool // there were more
}

// Unwrap returns Err.
func (e *ClaimError) Unwrap() error { return e.Err }

// Error is the sentence of Err and the clients.
func (e *ClaimError) Error() string {
	list := make([]string, 0, len(e.Claimants)+1)
	for _, c := range e.Claimants {
		list = append(list, c.String())
	}
	if e.Unlisted {
		list = append(list, "others that are no longer listed")
	}
	return e.Err.Error() + ". They are: " + strings.Join(list, "; ")
}

// Claimant is a client that names itself by a robot's MAC.
type Claimant struct {
	Client   string    `json:"client"` // its Client-Id; empty where it sends none
	Address  string    `json:"address"`
	Board    string    `json:"board,omitempty"`
	Firmware string    `json:"firmware,omitempty"`
	At       time.Time `json:"at"`    // when it was last here
	Bound    bool      `json:"bound"` // it has the robot's token: it came first, or is adopted
}

// String is the client in a line of text.
func (c Claimant) String() string {
	id := "no Client-Id"
	if c.Client != "" {
		id = fmt.Sprintf("Client-Id %q", c.Client)
	}
	return fmt.Sprintf("%s from %s at %s", id, cmp.Or(plain.Text(c.Address), "an unknown address"), c.At.UTC().Format(time.RFC3339))
}

func (c Claim) claimant(bound bool) Claimant {
	return Claimant{Client: c.ID, Address: c.Address, Board: c.Board, Firmware: c.Firmware, At: c.At, Bound: bound}
}

// Contested reports whether two or more clients have claimed the MAC of a robot
// that nobody has adopted: none of them is it until its owner names one.
func (r Robot) Contested() bool {
	waiting := len(r.claims())
	return !r.Adopted() && (waiting > 1 || waiting > 0 && r.Bound || r.Unlisted)
}

// Claimants are the clients that claim a robot: the one that is bound, then those that
// wait, the latest first.
func (r Robot) Claimants() []Claimant {
	waiting := r.claims()
	slices.SortStableFunc(waiting, func(a, b Claim) int { return b.At.Compare(a.At) })
	var all []Claimant
	if r.Bound {
		all = append(all, r.bound().claimant(true))
	}
	for _, c := range waiting {
		all = append(all, c.claimant(false))
	}
	return all
}

// claims are the clients that wait, in no order.
func (r Robot) claims() []Claim {
	if r.Claim == nil {
		return nil
	}
	return append([]Claim{*r.Claim}, r.Rivals...)
}

// bound is the client that is bound, as a claim.
func (r Robot) bound() Claim {
	return Claim{Client: r.Client, Board: r.Board, Firmware: r.Firmware, Language: r.Language, Address: r.Address, BaseURL: r.BaseURL, At: r.LastSeen}
}

// lastHeard is when any client last came with the MAC of a robot that nobody has
// adopted, and when an adopted one was last seen.
func (r Robot) lastHeard() time.Time {
	last := r.LastSeen
	if !r.Adopted() {
		for _, c := range r.claims() {
			if c.At.After(last) {
				last = c.At
			}
		}
	}
	return last
}

// claim notes a check-in that was not admitted, as a claim and nowhere else. Where
// too many clients wait, the one that came longest ago gives way, of the machine that
// has most of them.
func (r *Robot) claim(c CheckIn, now time.Time) {
	r.release(c.Client)
	if others := r.claims(); len(others) >= mostClaims {
		r.Rivals, r.Unlisted = withoutMostNumerous(others), true
	} else {
		r.Rivals = others
	}
	r.Claim = &Claim{Client: c.Client, Board: c.Board, Firmware: c.Firmware, Language: c.Language, Address: c.Address, BaseURL: c.BaseURL, At: now}
	if !r.Bound {
		if r.FirstSeen.IsZero() {
			r.FirstSeen = now
		}
		r.LastSeen = now
	}
}

// withoutMostNumerous leaves out the oldest claim of the machine that has most.
func withoutMostNumerous(claims []Claim) []Claim {
	of := map[netip.Prefix]int{}
	for _, c := range claims {
		from, _ := originOf(c.Address)
		of[from.machine]++
	}
	out := 0
	for i, c := range claims {
		from, _ := originOf(c.Address)
		than, _ := originOf(claims[out].Address)
		if order := cmp.Compare(of[from.machine], of[than.machine]); order > 0 || order == 0 && c.At.Before(claims[out].At) {
			out = i
		}
	}
	return slices.Delete(claims, out, out+1)
}

// release ends the claim of a client that is let in. Those of others stay.
func (r *Robot) release(c Client) {
	rest := slices.DeleteFunc(r.claims(), func(other Claim) bool { return other.Client == c })
	r.Claim, r.Rivals = nil, nil
	if len(rest) > 0 {
		r.Claim, r.Rivals = &rest[0], rest[1:]
	}
}

// decided ends all claims: the owner has spoken.
func (r *Robot) decided() { r.Claim, r.Rivals, r.Unlisted = nil, nil, false }

// bind makes a client the robot's own, and ends all claims.
func (r *Robot) bind(c Claim) {
	r.Client, r.Bound = c.Client, true
	r.Board, r.Firmware, r.Language, r.Address, r.BaseURL = c.Board, c.Firmware, c.Language, c.Address, c.BaseURL
	r.decided()
}

// claimOf is the claim of a client. One that is not listed has said nothing of itself
// that is still known; that comes with its next check-in.
func (r Robot) claimOf(c Client) Claim {
	waiting := r.claims()
	if i := slices.IndexFunc(waiting, func(one Claim) bool { return one.Client == c }); i >= 0 {
		return waiting[i]
	}
	return Claim{Client: c}
}

// named is the client that an owner names by its Client-Id or its address. A Client-Id
// that is no longer listed is believed, or strangers could keep a robot out by claims
// in great number. An IP address is never read as a Client-Id, which a stranger may
// have chosen to equal it.
func (r Robot) named(client string) (Claim, error) {
	all := r.claims()
	if r.Bound {
		all = append(all, r.bound())
	}
	is := func(c Claim) bool { return c.Sent && c.Client == NewClient(client) }
	address, err := netip.ParseAddr(client)
	if err == nil {
		is = func(c Claim) bool {
			from, err := netip.ParseAddr(c.Address)
			return err == nil && from.Unmap() == address.Unmap()
		}
	}
	fit := slices.DeleteFunc(all, func(c Claim) bool { return !is(c) })
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return Claim{}, r.claimError(ErrAmbiguous)
	case r.Unlisted && err != nil:
		return Claim{Client: NewClient(client)}, nil
	}
	return Claim{}, r.claimError(ErrNotAmongThem)
}

func (r Robot) claimError(err error) error {
	return &ClaimError{Err: err, Claimants: r.Claimants(), Unlisted: r.Unlisted}
}

// sameClaims reports whether the same clients wait and say the same of themselves,
// whenever they came.
func sameClaims(a, b []Claim) bool {
	has := func(claims []Claim, c Claim) bool {
		return slices.ContainsFunc(claims, func(other Claim) bool {
			other.At = c.At
			return other == c
		})
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c Claim) bool { return !has(b, c) })
}
