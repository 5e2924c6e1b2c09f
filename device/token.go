package device

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"perch/plain"
)

// Client identifies an installation of the firmware by its Client-Id, a UUID that the firmware
// creates if its flash holds none. All robots that send no Client-Id have the same Client.
type Client struct {
	ID   string `json:"id,omitempty"`
	Sent bool   `json:"sent"` // whether the robot sent a Client-Id
}

// MaxClient is the maximum length of a Client-Id, in bytes. The Client-Ids of the firmware have 36.
const MaxClient = 128

// NewClient returns the client of a Client-Id header. It truncates the ID to MaxClient bytes and removes
// invalid UTF-8, which JSON cannot store: the stored ID must equal the ID of the next request.
func NewClient(header string) Client {
	return Client{ID: plain.Clip(header, MaxClient), Sent: header != ""}
}

// Key is the secret key that signs the robots' tokens, from the file token-key in the data directory.
type Key []byte

// Token returns the bearer token of a robot: an HMAC-SHA256 of its ID, client and epoch in unpadded
// base64url. The token has no dot, colon or space, so that the firmware sends it unchanged after
// "Bearer ". Increasing the epoch invalidates every earlier token.
func (k Key) Token(id ID, c Client, epoch int) string {
	h := hmac.New(sha256.New, k)
	// The length of the Client-Id makes the input unambiguous.
	fmt.Fprintf(h, "token\n%s\n%t %d %s\n%d", id, c.Sent, len(c.ID), c.ID, epoch)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// ErrOtherClient is returned by Registry.Token if the robot is adopted with another client.
var ErrOtherClient = errors.New("this robot is adopted with another Client-Id, and its token is good for that one only")

// Token returns an adopted robot and its token, which the owner can enter in other programs. The token is valid
// only together with the Client-Id of the robot's adoption, except for a robot that was added by hand. c is the client
// that will use the token, or the zero Client for any. Token returns ErrUnknownRobot, an error that wraps ErrNotAdopted,
// or ErrOtherClient if the token is not valid for c.
func (r *Registry) Token(id ID, c Client) (Robot, string, error) {
	robot, err := r.Get(id)
	switch {
	case err != nil:
		return Robot{}, "", err
	case !robot.Adopted():
		return Robot{}, "", fmt.Errorf("%w, and a stranger has no token", ErrNotAdopted)
	case c.Sent && c != robot.Client && !robot.ByHand:
		return Robot{}, "", ErrOtherClient
	}
	return robot, r.key.Token(id, robot.Client, robot.Epoch), nil
}
