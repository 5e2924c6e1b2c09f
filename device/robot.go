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

	// Settings are what its owner has set for it. Outside the registry they are
	// those that hold: none of a stranger's, and first those of the configuration file.
	Settings Settings `json:"settings,omitzero"`

	// Claim is another client that came with this robot's MAC and waits for
	// the owner to say that it is the same robot: the latest to come.
	Claim *Claim `json:"claim,omitempty"`
	// Rivals are the other clients that wait. There are none without a Claim.
	Rivals []Claim `json:"rivals,omitempty"`
	// Unlisted is true where more clients have claimed this robot's MAC than are
	// kept here.
	Unlisted bool `json:"unlisted,omitempty"`

	// What follows is of admitted check-ins: anybody can claim a MAC.
	Board     string    `json:"board,omitempty"`
	Firmware  string    `json:"firmware,omitempty"`
	Language  string    `json:"language,omitempty"`
	Address   string    `json:"address,omitempty"` // IP address of the last check-in
	BaseURL   string    `json:"base_url,omitempty"`
	FirstSeen time.Time `json:"first_seen,omitzero"`
	LastSeen  time.Time `json:"last_seen,omitzero"` // it booted, or opened its channel
	Booted    time.Time `json:"booted,omitzero"`    // its last check-in

	Echo bool `json:"echo,omitempty"` // it leaves echo cancellation to us

	// Transport is what its last check-in has told it to use.
	Transport Transport `json:"transport_given,omitempty"`

	Tools         []Tool `json:"tools,omitempty"`
	ToolsFirmware string `json:"tools_firmware,omitempty"` // the firmware that listed Tools
}

// Claim is a client that waits for the owner, and what it claims.
type Claim struct {
	Client
	Board    string    `json:"board,omitempty"`
	Firmware string    `json:"firmware,omitempty"`
	Language string    `json:"language,omitempty"`
	Address  string    `json:"address,omitempty"`
	BaseURL  string    `json:"base_url,omitempty"`
	At       time.Time `json:"at,omitzero"` // of its latest check-in
	// Contested is set in records of versions that kept the latest claim only:
	// when it replaced another client's.
	Contested time.Time `json:"contested,omitzero"`
}

// Adopted reports whether the owner has adopted the robot by name. Every other
// robot is a stranger: it gets a talk with its own memory, and nothing else.
func (r Robot) Adopted() bool { return r.Bound && r.Named }

// Forgotten reports whether only the epoch of the robot's tokens is known.
func (r Robot) Forgotten() bool { return !r.Bound && r.Claim == nil }

// LastAddress is where the robot was last seen, admitted or not.
func (r Robot) LastAddress() string {
	if r.Address == "" && r.Claim != nil {
		return r.Claim.Address
	}
	return r.Address
}

// CheckIn is what a robot reports when it boots.
type CheckIn struct {
	ID       ID
	Client   Client
	Board    string
	Firmware string
	Language string
	Address  string
	BaseURL  string // "http://host:port" as the robot reached us
}

// Adoption is what becomes of a robot that was never here.
type Adoption string

// The ways of adoption.
const (
	AdoptOpen Adoption = "open" // it may talk at once, and is adopted in the first hour; see Registry.Welcome
	AdoptCode Adoption = "code" // it shows a code until its owner adopts it
)

// Admission is the answer to a check-in.
type Admission struct {
	Token   string // empty where the robot may not connect
	Code    string // six digits to show while it waits for its owner; empty while too many wait, and it is adopted by its id
	New     bool   // the robot was not known
	Adopted bool   // this check-in has adopted it
	Repeats bool   // the client waits already, and its check-in has nothing new
	Gone    []ID   // strangers that gave way to it, or had expired
}

// see copies an admitted check-in into r.
func (r *Robot) see(c CheckIn, now time.Time) {
	if r.FirstSeen.IsZero() {
		r.FirstSeen = now
	}
	r.LastSeen, r.Booted = now, now
	r.Board, r.Firmware, r.Language = c.Board, c.Firmware, c.Language
	r.Address, r.BaseURL = c.Address, c.BaseURL
}

// news reports whether r differs from before in more than the times of visits: a
// visit with nothing new need not be written at once.
func (r Robot) news(before Robot) bool {
	shown := func(r Robot) CheckIn {
		return CheckIn{Client: r.Client, Board: r.Board, Firmware: r.Firmware, Language: r.Language, Address: r.Address, BaseURL: r.BaseURL}
	}
	return before.Bound != r.Bound || before.Named != r.Named || before.Unlisted != r.Unlisted || shown(before) != shown(r) ||
		!sameClaims(before.claims(), r.claims())
}
