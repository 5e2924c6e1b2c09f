package hass

import (
	"context"
	"slices"
	"time"
)

// User is an account of Home Assistant.
type User struct {
	ID     string   `json:"id"`
	Owner  bool     `json:"is_owner"` // whether this is the user who set up Home Assistant
	Active bool     `json:"is_active"`
	Groups []string `json:"group_ids"`
}

// Administrator reports whether the user is active and may change Home Assistant's settings, like
// User.is_admin in Home Assistant Core.
func (u User) Administrator() bool {
	return u.Active && (u.Owner || slices.Contains(u.Groups, "system-admin"))
}

// usersTimeout is the time limit for the list of users of Home Assistant.
const usersTimeout = 5 * time.Second

// Users returns the accounts of Home Assistant. The token must belong to an administrator, like
// the token that the Supervisor gives to apps. Users returns the same errors as Dial and Call.
func (c *Client) Users(ctx context.Context) ([]User, error) {
	conn, err := c.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var users []User
	if err := conn.Call(ctx, usersTimeout, "config/auth/list", nil, &users); err != nil {
		return nil, err
	}
	return users, nil
}
