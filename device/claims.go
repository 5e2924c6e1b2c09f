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

// Anybody can check in with a robot's MAC. All clients that do so are stored, up to
// mostClaims. Only the owner can say which of them is the robot, by the code on its
// screen or by naming a client: the robot's id alone adopts none of them.

// mostClaims bounds the clients waiting under one id.
const mostClaims = 8

// Errors of adopting an id that several clients claim. They are returned inside a
// ClaimError, which lists the clients.
var (
	// ErrContested reports that a robot was not adopted because two or more clients use its MAC.
	ErrContested = errors.New("more than one client names itself by this MAC address, and any of them may be a stranger's. " +
		"Adopt the robot by the code on its screen, or name the client that is yours by its Client-Id or its address (--client, or client in a request)")
	// ErrClaimed reports that another client is waiting with the MAC of an adopted robot.
	ErrClaimed = errors.New("this robot is adopted already, and another client waits that names itself by the same MAC address. " +
		"If you erased the robot's flash, adopt it by the code on its screen, or name the client that is yours by its Client-Id or its " +
		"address (--client, or client in a request)")
	// ErrNotAmongThem reports that the named client does not claim the robot. It is an ErrNothingToAdopt.
	ErrNotAmongThem = fmt.Errorf("%w: no client with this Client-Id or address names itself by the robot's MAC address", ErrNothingToAdopt)
	// ErrAmbiguous reports that two or more clients came from the given address.
	ErrAmbiguous = errors.New("more than one client came from this address; name the one that is yours by its Client-Id")
)

// ClaimError is an adoption error with the clients that claim the robot.
type ClaimError struct {
	Err       error // ErrContested, ErrClaimed, ErrNotAmongThem or ErrAmbiguous
	Claimants []Claimant
	Unlisted  bool // more clients than Claimants lists
}

// Unwrap returns Err.
func (e *ClaimError) Unwrap() error { return e.Err }

// Error returns the sentence of Err followed by the clients.
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

// Claimant is a client that uses a robot's MAC.
type Claimant struct {
	Client   string    `json:"client"` // its Client-Id; empty if it sends none
	Address  string    `json:"address"`
	Board    string    `json:"board,omitempty"`
	Firmware string    `json:"firmware,omitempty"`
	At       time.Time `json:"at"`    // its latest check-in
	Bound    bool      `json:"bound"` // it has the robot's token, because it came first or was adopted
}

// String returns the client as one line of text.
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

// Contested reports whether two or more clients claim the MAC of a robot that
// nobody has adopted. None of them is trusted until the owner names one.
func (r Robot) Contested() bool {
	waiting := len(r.claims())
	return !r.Adopted() && (waiting > 1 || waiting > 0 && r.Bound || r.Unlisted)
}

// Claimants returns the clients that claim a robot: first the bound one, then the
// waiting ones, latest first.
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

// claims returns the waiting clients, unordered.
func (r Robot) claims() []Claim {
	if r.Claim == nil {
		return nil
	}
	return append([]Claim{*r.Claim}, r.Rivals...)
}

// bound returns the bound client as a claim.
func (r Robot) bound() Claim {
	return Claim{Client: r.Client, Board: r.Board, Firmware: r.Firmware, Language: r.Language, Address: r.Address, BaseURL: r.BaseURL, At: r.LastSeen}
}

// lastHeard returns when any client last checked in with the MAC of a robot that
// nobody has adopted, or when an adopted robot was last seen.
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

// claim records a check-in that was not admitted. If too many clients wait, the
// oldest claim of the machine that has most of them is dropped.
func (r *Robot) claim(c CheckIn, now time.Time) {
	r.removeClaim(c.Client)
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

// withoutMostNumerous drops the oldest claim of the machine that has most.
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

// removeClaim drops the claim of a client that is admitted. Other claims stay.
func (r *Robot) removeClaim(c Client) {
	rest := slices.DeleteFunc(r.claims(), func(other Claim) bool { return other.Client == c })
	r.Claim, r.Rivals = nil, nil
	if len(rest) > 0 {
		r.Claim, r.Rivals = &rest[0], rest[1:]
	}
}

// clearClaims removes all claims, after the owner has chosen.
func (r *Robot) clearClaims() { r.Claim, r.Rivals, r.Unlisted = nil, nil, false }

// bind binds the robot to a client and removes all claims.
func (r *Robot) bind(c Claim) {
	r.Client, r.Bound = c.Client, true
	r.Board, r.Firmware, r.Language, r.Address, r.BaseURL = c.Board, c.Firmware, c.Language, c.Address, c.BaseURL
	r.clearClaims()
}

// claimOf returns the claim of a client. For a client that is not listed it has the
// Client-Id only; its next check-in fills in the rest.
func (r Robot) claimOf(c Client) Claim {
	waiting := r.claims()
	if i := slices.IndexFunc(waiting, func(one Claim) bool { return one.Client == c }); i >= 0 {
		return waiting[i]
	}
	return Claim{Client: c}
}

// claimant returns the client with the given Client-Id or address. A Client-Id that is
// not listed is accepted, or strangers could lock a robot out by many claims. An IP
// address is never read as a Client-Id, since a stranger may have chosen that
// address as its Client-Id.
func (r Robot) claimant(client string) (Claim, error) {
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

// sameClaims reports whether a and b have the same clients with the same details,
// ignoring times.
func sameClaims(a, b []Claim) bool {
	has := func(claims []Claim, c Claim) bool {
		return slices.ContainsFunc(claims, func(other Claim) bool {
			other.At = c.At
			return other == c
		})
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c Claim) bool { return !has(b, c) })
}
