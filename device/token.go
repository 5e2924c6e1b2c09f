package device

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"perch/plain"
)

// Client is what the firmware sends as Client-Id: a UUID made when its flash
// was last erased. A robot that sends none is a client too, of its own kind.
type Client struct {
	ID   string `json:"id,omitempty"`
	Sent bool   `json:"sent"` // false where the header was absent
}

// MaxClient bounds a Client-Id; the firmware's are 36 characters.
const MaxClient = 128

// NewClient returns the client of a header. It is cut to a length, and to the UTF-8
// that comes back from the store.
func NewClient(header string) Client {
	return Client{ID: plain.Clip(header, MaxClient), Sent: header != ""}
}

// Key makes and checks robots' secrets. It is the content of DATA/token-key.
type Key []byte

// Token is the bearer token of a robot: an HMAC-SHA256 over who it is. It
// holds no dot, colon or space, so the firmware sends it as it is and puts
// "Bearer " before it. Raising the epoch makes every earlier token void.
func (k Key) Token(id ID, c Client, epoch int) string {
	h := hmac.New(sha256.New, k)
	// The length of the Client-Id keeps the input of two different robots apart.
	fmt.Fprintf(h, "token\n%s\n%t %d %s\n%d", id, c.Sent, len(c.ID), c.ID, epoch)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// ErrOtherClient is returned by Registry.Token for a client that is not adopted.
var ErrOtherClient = errors.New("this robot is adopted with another Client-Id, and its token is good for that one only")

// Token is the token of an adopted robot, for its owner to enter where a client
// has a field for it, and the robot. It is good for the client that the robot is
// adopted with and no other, which is the one that is meant where none is named.
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
