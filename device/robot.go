package device

import "time"

// Robot is the stored record of a robot.
type Robot struct {
	ID     ID     `json:"id"`
	Client Client `json:"client"` // the client it is bound to
	Bound  bool   `json:"bound"`  // false until first admitted, and after Forget
	Epoch  int    `json:"epoch"`

	// Named is true if the owner adopted the robot; false if it was only admitted
	// under open adoption.
	Named bool `json:"named,omitempty"`

	// Settings are the owner's. Outside the registry they are the effective ones:
	// empty for a stranger, and overridden by the configuration file.
	Settings Settings `json:"settings,omitzero"`

	// Claim is the latest of the clients that came with this robot's MAC and wait
	// for the owner to confirm that they are this robot.
	Claim *Claim `json:"claim,omitempty"`
	// Rivals are the other waiting clients. Empty without a Claim.
	Rivals []Claim `json:"rivals,omitempty"`
	// Unlisted is true if more clients claim this robot's MAC than are stored.
	Unlisted bool `json:"unlisted,omitempty"`

	// The rest is of admitted check-ins only, since anybody can claim a MAC.
	Board     string    `json:"board,omitempty"`
	Firmware  string    `json:"firmware,omitempty"`
	Language  string    `json:"language,omitempty"`
	Address   string    `json:"address,omitempty"` // IP address of the last check-in
	BaseURL   string    `json:"base_url,omitempty"`
	FirstSeen time.Time `json:"first_seen,omitzero"`
	LastSeen  time.Time `json:"last_seen,omitzero"` // last boot or channel
	Booted    time.Time `json:"booted,omitzero"`    // last check-in

	Echo bool `json:"echo,omitempty"` // it leaves echo cancellation to the appliance

	// Transport was selected in the answer to its last check-in.
	Transport Transport `json:"transport_given,omitempty"`

	Tools         []Tool `json:"tools,omitempty"`
	ToolsFirmware string `json:"tools_firmware,omitempty"` // the firmware that listed Tools
}

// Claim is a client that waits for the owner, with the details it gave.
type Claim struct {
	Client
	Board    string    `json:"board,omitempty"`
	Firmware string    `json:"firmware,omitempty"`
	Language string    `json:"language,omitempty"`
	Address  string    `json:"address,omitempty"`
	BaseURL  string    `json:"base_url,omitempty"`
	At       time.Time `json:"at,omitzero"` // latest check-in
	// Contested is set in records of versions that stored the latest claim only:
	// when it replaced another client's.
	Contested time.Time `json:"contested,omitzero"`
}

// Adopted reports whether the owner has adopted the robot by name. Any other robot is
// a stranger: it may talk, with its own memory, and nothing else.
func (r Robot) Adopted() bool { return r.Bound && r.Named }

// Forgotten reports whether only the epoch of the robot's tokens is left.
func (r Robot) Forgotten() bool { return !r.Bound && r.Claim == nil }

// LastAddress returns where the robot was last seen, admitted or not.
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
	BaseURL  string // "http://host:port" as the robot reached the appliance
}

// Adoption says whether a new robot may talk.
type Adoption string

// The values of Adoption.
const (
	AdoptOpen Adoption = "open" // it may talk at once, and is adopted in the first hour; see Registry.Welcome
	AdoptCode Adoption = "code" // it shows a code until its owner adopts it
)

// Admission is the answer to a check-in.
type Admission struct {
	Token   string // empty if the robot may not connect
	Code    string // six digits to show until it is adopted; empty while too many robots wait
	New     bool   // the robot was not known
	Adopted bool   // adopted by this check-in
	Repeats bool   // the client waits already, and its check-in has nothing new
	Gone    []ID   // strangers that were evicted for it, or had expired
}

// applyCheckIn copies an admitted check-in into r.
func (r *Robot) applyCheckIn(c CheckIn, now time.Time) {
	if r.FirstSeen.IsZero() {
		r.FirstSeen = now
	}
	r.LastSeen, r.Booted = now, now
	r.Board, r.Firmware, r.Language = c.Board, c.Firmware, c.Language
	r.Address, r.BaseURL = c.Address, c.BaseURL
}

// news reports whether r differs from before in more than the times of visits; other
// changes need not be written at once.
func (r Robot) news(before Robot) bool {
	shown := func(r Robot) CheckIn {
		return CheckIn{Client: r.Client, Board: r.Board, Firmware: r.Firmware, Language: r.Language, Address: r.Address, BaseURL: r.BaseURL}
	}
	return before.Bound != r.Bound || before.Named != r.Named || before.Unlisted != r.Unlisted || shown(before) != shown(r) ||
		!sameClaims(before.claims(), r.claims())
}
