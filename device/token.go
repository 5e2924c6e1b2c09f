package device

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"perch/plain"
)

// Client is what the firmware sends as Client-Id: a UUID made when its flash was last
// erased. Robots that send none are a client too.
type Client struct {
	ID   string `json:"id,omitempty"`
	Sent bool   `json:"sent"` // false if the header was absent
}

// MaxClient bounds a Client-Id, in bytes; the firmware's has 36.
const MaxClient = 128

// NewClient returns the client of a header, cut to MaxClient and to valid UTF-8, as the
// store returns it.
func NewClient(header string) Client {
	return Client{ID: plain.Clip(header, MaxClient), Sent: header != ""}
}

// Key creates and checks robots' tokens. It is the content of DATA/token-key.
type Key []byte

// Token returns a robot's bearer token: an HMAC-SHA256 over its identity. It has no
// dot, colon or space, so the firmware sends it unchanged after "Bearer ". Raising the
// epoch invalidates every earlier token.
func (k Key) Token(id ID, c Client, epoch int) string {
	h := hmac.New(sha256.New, k)
	// The length of the Client-Id keeps the input of two different robots apart.
	fmt.Fprintf(h, "token\n%s\n%t %d %s\n%d", id, c.Sent, len(c.ID), c.ID, epoch)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// ErrOtherClient is returned by Registry.Token for a client other than the adopted one.
var ErrOtherClient = errors.New("this robot is adopted with another Client-Id, and its token is good for that one only")

// Token returns the token of an adopted robot, for its owner to enter in a client that
// has a field for it, and the robot. It is valid only for the client that the robot is
// adopted with, which is used if c names none.
func (r *Registry) Token(id ID, c Client) (Robot, string, error) {
	robot, err := r.Get(id)
	switch {
	case err != nil:
		return Robot{}, "", err
	case !robot.Adopted():
		return Robot{}, "", fmt.Errorf("%w, and a stranger has no token", ErrNotAdopted)
	case c.Sent && c != robot.Client:
		return Robot{}, "", ErrOtherClient
	}
	return robot, r.key.Token(id, robot.Client, robot.Epoch), nil
}
