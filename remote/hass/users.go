package hass

import (
	"context"
	"slices"
	"time"
)

// User is an account of Home Assistant. Only its role is read.
type User struct {
	ID     string   `json:"id"`
	Owner  bool     `json:"is_owner"` // has set up Home Assistant
	Active bool     `json:"is_active"`
	Groups []string `json:"group_ids"`
}

// Administrator reports whether the user may change Home Assistant's settings, as in Core's
// User.is_admin. Inactive users may not.
func (u User) Administrator() bool {
	return u.Active && (u.Owner || slices.Contains(u.Groups, "system-admin"))
}

// usersWithin is how long Home Assistant may take to list its users.
const usersWithin = 5 * time.Second

// Users returns the accounts of Home Assistant. The token must be an administrator's; the
// Supervisor gives apps such a token. Errors are those of Dial and Call.
func (c *Client) Users(ctx context.Context) ([]User, error) {
	conn, err := c.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var all []User
	if err := conn.Call(ctx, usersWithin, "config/auth/list", nil, &all); err != nil {
		return nil, err
	}
	return all, nil
}
