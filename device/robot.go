package device

import "time"

// Robot is what is remembered of a robot.
type Robot struct {
	ID     ID     `json:"id"`
	Client Client `json:"client"` // the one it is bound to
	Bound  bool   `json:"bound"`  // false until it is first admitted, and after forget
	Epoch  int    `json:"epoch"`

	// Named is a robot that its owner has adopted by its id or its code, and
	// not one that was let in because everybody is.
	Named bool `json:"named,omitempty"`

	// Claim is another client that came with this robot's MAC and waits for
	// the owner to say that it is the same robot.
	Claim *Client `json:"claim,omitempty"`

	Board     string    `json:"board,omitempty"`
	Firmware  string    `json:"firmware,omitempty"`
	Language  string    `json:"language,omitempty"`
	Address   string    `json:"address,omitempty"` // IP address of the last check-in
	BaseURL   string    `json:"base_url,omitempty"`
	FirstSeen time.Time `json:"first_seen,omitzero"`
	LastSeen  time.Time `json:"last_seen,omitzero"` // it booted, or opened its channel
	Booted    time.Time `json:"booted,omitzero"`    // its last check-in

	Echo bool `json:"echo,omitempty"` // it leaves echo cancellation to us

	Tools         []Tool `json:"tools,omitempty"`
	ToolsFirmware string `json:"tools_firmware,omitempty"` // the firmware that listed Tools
}

// CheckIn is what a robot says of itself when it boots.
type CheckIn struct {
	ID       ID
	Client   Client
	Board    string
	Firmware string
	Language string
	Address  string
	BaseURL  string // "http://host:port" as the robot reached us
}

// Adoption says what becomes of a robot that was never here.
type Adoption string

// The ways of adoption.
const (
	AdoptOpen Adoption = "open" // it is welcome at once
	AdoptCode Adoption = "code" // it shows a code until its owner adopts it
	AdoptAsk  Adoption = "ask"  // the same, by an earlier name
)

// Admission is the answer to a check-in.
type Admission struct {
	Token string // empty where the robot may not connect
	Code  string // six digits to show while it waits for its owner; empty while too many wait, and it is adopted by its id
}

// see copies into r what a check-in tells.
func (r *Robot) see(c CheckIn, now time.Time) {
	if r.FirstSeen.IsZero() {
		r.FirstSeen = now
	}
	r.LastSeen, r.Booted = now, now
	r.Board, r.Firmware, r.Language = c.Board, c.Firmware, c.Language
	r.Address, r.BaseURL = c.Address, c.BaseURL
}

// sameButTime reports whether nothing but the time of the visit differs, so
// that a visit which tells nothing new need not be written at once.
func (r Robot) sameButTime(c CheckIn) bool {
	return r.Board == c.Board && r.Firmware == c.Firmware && r.Language == c.Language &&
		r.Address == c.Address && r.BaseURL == c.BaseURL
}
