package device

import "time"

// Robot is the stored record of a robot.
type Robot struct {
	ID     ID     `json:"id"`
	Client Client `json:"client"` // the client that may connect; set only if Bound is true
	Bound  bool   `json:"bound"`  // whether a client was admitted or adopted; false again after Forget
	Epoch  int    `json:"epoch"`  // tokens of earlier epochs are invalid

	// Named is true if the robot was adopted. Being admitted with AdoptOpen does not set it.
	Named bool `json:"named,omitempty"`

	// Welcomed is true if Registry.Welcome has adopted the robot and the owner, who may not know the robot, has
	// neither adopted nor configured it since.
	Welcomed bool `json:"welcomed,omitempty"`

	// ByHand is true for a robot that makes no check-in and that the owner has added; see Registry.AddByHand.
	ByHand bool `json:"by_hand,omitempty"`

	// Settings are the owner's settings. In robots that Registry's methods return, except SetFixed, they include
	// the settings of the configuration file, and are empty if the robot is not adopted.
	Settings Settings `json:"settings,omitzero"`

	// Claim is the latest claim on this robot: a client that used its MAC address and was not
	// admitted. Nil if there is no claim.
	Claim *Claim `json:"claim,omitempty"`
	// Rivals are the other claims. Empty if Claim is nil.
	Rivals []Claim `json:"rivals,omitempty"`
	// Unlisted is true if there were more claims than are stored.
	Unlisted bool `json:"unlisted,omitempty"`

	// Board to BaseURL are from check-ins of the bound client only, because anybody can claim a robot.
	// FirstSeen and LastSeen also include check-ins of other clients while no client is bound.
	Board     string    `json:"board,omitempty"`
	Firmware  string    `json:"firmware,omitempty"`
	Language  string    `json:"language,omitempty"`
	Address   string    `json:"address,omitempty"`  // IP address at the last check-in
	BaseURL   string    `json:"base_url,omitempty"` // see CheckIn
	FirstSeen time.Time `json:"first_seen,omitzero"`
	LastSeen  time.Time `json:"last_seen,omitzero"` // last check-in, MQTT connection, or opening or end of a channel
	Booted    time.Time `json:"booted,omitzero"`    // last check-in of the bound client

	Echo bool `json:"echo,omitempty"` // whether the robot leaves echo cancellation to the appliance

	// Transport was selected by the response to the robot's last check-in.
	Transport Transport `json:"transport_given,omitempty"`

	Tools         []Tool `json:"tools,omitempty"`
	ToolsFirmware string `json:"tools_firmware,omitempty"` // version of the firmware that has listed Tools
}

// Claim is a client that has used a robot's MAC address without being admitted, with the details of
// its latest check-in.
type Claim struct {
	Client
	Board    string    `json:"board,omitempty"`
	Firmware string    `json:"firmware,omitempty"`
	Language string    `json:"language,omitempty"`
	Address  string    `json:"address,omitempty"`
	BaseURL  string    `json:"base_url,omitempty"`
	At       time.Time `json:"at,omitzero"` // latest check-in
	// Contested is set only in records of old versions, which stored only the latest claim. It is the
	// time when this claim replaced the claim of another client.
	Contested time.Time `json:"contested,omitzero"`
}

// Adopted reports whether the robot is adopted. A robot that is not adopted is a stranger: it may hold
// conversations, with its own memory, and nothing else.
func (r Robot) Adopted() bool { return r.Bound && r.Named }

// Forgotten reports whether the record holds only the epoch.
func (r Robot) Forgotten() bool { return !r.Bound && r.Claim == nil }

// LastAddress returns the robot's IP address, or the address of its latest claim if no client was admitted.
func (r Robot) LastAddress() string {
	if r.Address == "" && r.Claim != nil {
		return r.Claim.Address
	}
	return r.Address
}

// CheckIn is the request that a robot sends when it boots.
type CheckIn struct {
	ID       ID
	Client   Client
	Board    string
	Firmware string
	Language string
	Address  string // IP address
	BaseURL  string // URL at which the robot has reached the appliance, such as "http://host:port"
}

// PageBoard is the board of a robot that is a tab of a browser.
const PageBoard = "perch-page"

// Adoption decides which new robots may connect.
type Adoption string

// The values of Adoption.
const (
	AdoptOpen Adoption = "open" // new robots may connect, and are adopted in the first hour; see Registry.Welcome
	AdoptCode Adoption = "code" // new robots show a code until their owner adopts them
)

// Admission is the result of a check-in.
type Admission struct {
	Token   string // empty if the robot may not connect
	Code    string // six digits that the robot shows until it is adopted; empty if it may connect, or if too many robots wait
	New     bool   // whether the robot was not registered before
	Adopted bool   // whether this check-in adopted the robot
	Repeats bool   // whether the client has a claim already, with the same details
	Gone    []ID   // strangers that the check-in has removed to make room, or because they were absent for too long
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

// differs reports whether r, the robot after a check-in, differs from before in anything but times.
func (r Robot) differs(before Robot) bool {
	details := func(r Robot) CheckIn {
		return CheckIn{Client: r.Client, Board: r.Board, Firmware: r.Firmware, Language: r.Language, Address: r.Address, BaseURL: r.BaseURL}
	}
	return before.Bound != r.Bound || before.Named != r.Named || before.Unlisted != r.Unlisted || details(before) != details(r) ||
		!sameClaims(before.claims(), r.claims())
}
