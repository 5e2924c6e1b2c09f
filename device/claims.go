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

// Anybody can check in with a robot's MAC address. A client (see Client) that checks in with this address
// and is not admitted has a claim on the robot. Only the owner can decide which client is the real robot:
// by the code on the robot's screen, or by naming a client. The robot's ID is not enough, because all
// these clients send the same ID.

// maxClaims is the maximum number of claims on one robot.
const maxClaims = 8

// Errors of adopting a robot that several clients claim. They are returned in a ClaimError, which
// lists the clients.
var (
	// ErrContested is returned if two or more clients use the robot's MAC address and none was chosen.
	ErrContested = errors.New("more than one client names itself by this MAC address, and any of them may be a stranger's. " +
		"Adopt the robot by the code on its screen, or name the client that is yours by its Client-Id or its address (--client, or client in a request)")
	// ErrClaimed is returned if the robot is adopted and another client claims it.
	ErrClaimed = errors.New("this robot is adopted already, and another client waits that names itself by the same MAC address. " +
		"If you erased the robot's flash, adopt it by the code on its screen, or name the client that is yours by its Client-Id or its " +
		"address (--client, or client in a request)")
	// ErrNotAmongThem is returned if the owner names a client that does not claim the robot. It wraps ErrNothingToAdopt.
	ErrNotAmongThem = fmt.Errorf("%w: no client with this Client-Id or address names itself by the robot's MAC address", ErrNothingToAdopt)
	// ErrAmbiguous is returned if two or more clients have the given address.
	ErrAmbiguous = errors.New("more than one client came from this address; name the one that is yours by its Client-Id")
)

// ClaimError is an adoption error with the clients that claim the robot.
type ClaimError struct {
	Err       error // ErrContested, ErrClaimed, ErrNotAmongThem or ErrAmbiguous
	Claimants []Claimant
	Unlisted  bool // whether there are more clients than Claimants lists
}

// Unwrap returns Err.
func (e *ClaimError) Unwrap() error { return e.Err }

// Error returns the text of Err and a list of the clients.
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

// Claimant describes a client that uses a robot's MAC address.
type Claimant struct {
	Client   string    `json:"client"`  // Client-Id; empty if the client sends none
	Address  string    `json:"address"` // IP address
	Board    string    `json:"board,omitempty"`
	Firmware string    `json:"firmware,omitempty"`
	At       time.Time `json:"at"`    // latest check-in
	Bound    bool      `json:"bound"` // whether the client is bound to the robot, and so has its token
}

// String describes the client in one line.
func (c Claimant) String() string {
	id := "no Client-Id"
	if c.Client != "" {
		id = fmt.Sprintf("Client-Id %q", c.Client)
	}
	return fmt.Sprintf("%s from %s at %s", id, cmp.Or(plain.Text(c.Address), "an unknown address"), c.At.UTC().Format(time.RFC3339))
}

// claimant returns the claim as a Claimant.
func (c Claim) claimant(bound bool) Claimant {
	return Claimant{Client: c.ID, Address: c.Address, Board: c.Board, Firmware: c.Firmware, At: c.At, Bound: bound}
}

// Contested reports whether two or more clients use the MAC address of a robot that is not adopted.
// The owner then has to choose one of them.
func (r Robot) Contested() bool {
	waiting := len(r.claims())
	return !r.Adopted() && (waiting > 1 || waiting > 0 && r.Bound || r.Unlisted)
}

// Claimants returns the clients that use the robot's MAC address: first the bound client, then the
// clients with claims, latest first.
func (r Robot) Claimants() []Claimant {
	waiting := r.claims()
	slices.SortStableFunc(waiting, func(a, b Claim) int { return b.At.Compare(a.At) })
	var claimants []Claimant
	if r.Bound {
		claimants = append(claimants, r.bound().claimant(true))
	}
	for _, c := range waiting {
		claimants = append(claimants, c.claimant(false))
	}
	return claimants
}

// claims returns all claims, in no particular order.
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

// lastHeard returns when an adopted robot was last seen. For other robots it returns when any client
// last checked in with the MAC address.
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

// addClaim adds or updates the claim of a client that was not admitted. If maxClaims other clients have
// claims already, it removes the oldest claim of the host with the most claims.
func (r *Robot) addClaim(c CheckIn, now time.Time) {
	r.removeClaim(c.Client)
	if others := r.claims(); len(others) >= maxClaims {
		r.Rivals, r.Unlisted = evictClaim(others), true
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

// evictClaim returns the claims without the oldest claim of the host with the most claims.
func evictClaim(claims []Claim) []Claim {
	count := map[netip.Prefix]int{} // key: host
	for _, c := range claims {
		from, _ := originOf(c.Address)
		count[from.host]++
	}
	victim := 0
	for i, c := range claims {
		from, _ := originOf(c.Address)
		other, _ := originOf(claims[victim].Address)
		if order := cmp.Compare(count[from.host], count[other.host]); order > 0 || order == 0 && c.At.Before(claims[victim].At) {
			victim = i
		}
	}
	return slices.Delete(claims, victim, victim+1)
}

func (r *Robot) removeClaim(c Client) {
	rest := slices.DeleteFunc(r.claims(), func(other Claim) bool { return other.Client == c })
	r.Claim, r.Rivals = nil, nil
	if len(rest) > 0 {
		r.Claim, r.Rivals = &rest[0], rest[1:]
	}
}

func (r *Robot) clearClaims() { r.Claim, r.Rivals, r.Unlisted = nil, nil, false }

// bind binds the robot to a client and removes all claims.
func (r *Robot) bind(c Claim) {
	r.Client, r.Bound = c.Client, true
	r.Board, r.Firmware, r.Language, r.Address, r.BaseURL = c.Board, c.Firmware, c.Language, c.Address, c.BaseURL
	r.clearClaims()
}

// claimOf returns the claim of a client. If no claim of the client is stored, the result holds only the
// client; the client's next check-in adds the other fields.
func (r Robot) claimOf(c Client) Claim {
	waiting := r.claims()
	if i := slices.IndexFunc(waiting, func(w Claim) bool { return w.Client == c }); i >= 0 {
		return waiting[i]
	}
	return Claim{Client: c}
}

// findClaim returns the claim of the client with a Client-Id or IP address. The bound client counts as a
// claim. If claims were evicted, findClaim also accepts a Client-Id that is not stored: otherwise strangers
// could lock a robot out by making many claims. Text in the form of an IP address is never compared with
// Client-Ids, because a stranger may have chosen the robot's IP address as its Client-Id. The error is a
// ClaimError with ErrAmbiguous or ErrNotAmongThem.
func (r Robot) findClaim(client string) (Claim, error) {
	claims := r.claims()
	if r.Bound {
		claims = append(claims, r.bound())
	}
	matches := func(c Claim) bool { return c.Sent && c.Client == NewClient(client) }
	address, err := netip.ParseAddr(client)
	if err == nil {
		matches = func(c Claim) bool {
			from, err := netip.ParseAddr(c.Address)
			return err == nil && from.Unmap() == address.Unmap()
		}
	}
	claims = slices.DeleteFunc(claims, func(c Claim) bool { return !matches(c) })
	switch {
	case len(claims) == 1:
		return claims[0], nil
	case len(claims) > 1:
		return Claim{}, r.claimError(ErrAmbiguous)
	case r.Unlisted && err != nil:
		return Claim{Client: NewClient(client)}, nil
	}
	return Claim{}, r.claimError(ErrNotAmongThem)
}

// claimError returns err in a ClaimError.
func (r Robot) claimError(err error) error {
	return &ClaimError{Err: err, Claimants: r.Claimants(), Unlisted: r.Unlisted}
}

// sameClaims reports whether a and b hold the same claims. It ignores the order and the times.
func sameClaims(a, b []Claim) bool {
	contains := func(claims []Claim, c Claim) bool {
		return slices.ContainsFunc(claims, func(other Claim) bool {
			other.At = c.At
			return other == c
		})
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c Claim) bool { return !contains(b, c) })
}
